"""The live console of the web UI: listening and publishing in the page."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.support.process import wait_until
from tests.support.server import WarrenServer

from .signed_in import SignedInPage

pytestmark = pytest.mark.thorough

LIMIT_S = 60.0
ROWS = "document.querySelectorAll('.messages-live li').length"


@pytest.fixture
def http(warren: WarrenServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=warren.http_url, auth=("guest", "guest")) as client:
        yield client


def _publish(http: httpx.Client, key: str, body: bytes = b"x") -> None:
    http.post("/endpoint/x/amq.topic", params={"hub.topic": key}, content=body).raise_for_status()


def test_messages_appear_as_they_are_published_here_and_elsewhere(
    ui: SignedInPage, http: httpx.Client
) -> None:
    ui.go("/console?name=amq.topic&key=eu.%23")
    ui.shows("Listening", "main header [role=status]")
    ui.fill("routing_key", "eu.fr", "main")
    ui.fill("headers", '{"colour": "red"}', "main")
    ui.fill("body", '{"hello": "<b>you</b>"}', "main")
    ui.shows("X-AMQP-Header-colour: red", "main")
    ui.press("Publish", "main")
    ui.shows("and confirmed to be stored", "main")
    _publish(http, "us.ny")
    _publish(http, "eu.de", b"\xff\xfe")
    ui.page.wait(f"{ROWS} === 2")
    ui.page.run("document.querySelectorAll('.messages-live details').forEach((one) => "
                "{ one.open = true; })")  # fmt: skip
    ui.shows("colour", ".messages-live")
    ui.shows('"hello": "<b>you</b>"', ".messages-live")
    ui.shows("ff fe", ".messages-live")


def test_a_pause_holds_messages_back_and_a_queue_is_taken_from(
    ui: SignedInPage, http: httpx.Client
) -> None:
    http.put("/api/queues/%2F/jobs", json={}).raise_for_status()
    ui.go("/console?kind=q&name=jobs")
    ui.shows("Listening to a classic or quorum queue takes its messages", "main")
    ui.press("Publish", "main")
    ui.shows("confirmed", "main")
    assert http.get("/api/queues/%2F/jobs").json()["messages"] == 1
    ui.press("Listen", "main")
    ui.page.wait(f"{ROWS} === 1")
    ui.press("Pause", "main")
    ui.press("Publish", "main")
    ui.shows("1 message since the pause", "main")
    assert ui.page.run(ROWS) == 1
    ui.press("Resume", "main")
    ui.page.wait(f"{ROWS} === 2")
    ui.press("Stop", "main")

    def has_left() -> bool:
        return bool(http.get("/api/queues/%2F/jobs").json()["consumers"] == 0)

    wait_until(has_left, LIMIT_S, "the end of the consumer")


def test_its_token_may_read_this_alone_and_ends_with_the_page(
    ui: SignedInPage, http: httpx.Client
) -> None:
    ui.go("/console?name=amq.topic")
    ui.shows("Listening", "main header [role=status]")
    (token,) = http.get("/api/hub/tokens").json()
    assert token["scopes"] == [{"read": "x/amq.topic", "vhost": "/"}]
    ui.go("/queues")
    wait_until(lambda: http.get("/api/hub/tokens").json() == [], LIMIT_S, "the token's end")


def test_an_unknown_name_is_told(ui: SignedInPage) -> None:
    ui.go("/console?name=nowhere")
    ui.shows("no exchange 'nowhere'", "main")
    ui.page.errors.clear()  # the browser reports each 404


def test_it_goes_on_after_a_restart_and_says_what_is_missing(
    ui: SignedInPage, warren: WarrenServer, http: httpx.Client
) -> None:
    ui.go("/console?name=amq.topic")
    ui.shows("Listening", "main header [role=status]")
    _publish(http, "before")
    ui.page.wait(f"{ROWS} === 1")
    ui.hide(True)  # else the page asks to sign in again: sessions end with the server
    warren.kill()
    ui.shows("Connecting again", "main header [role=status]")
    warren.start()
    ui.page.wait(
        "document.querySelector('main header [role=status]').innerText.startsWith('Listening')",
        60.0,
    )
    _publish(http, "after")
    ui.page.wait(f"{ROWS} === 2")
    ui.shows("Messages are missing here", ".messages-live")
    ui.page.errors.clear()  # the browser reports each refused connection
