"""A tunnelled application is a webhook target like any other, in the server's own process."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.support.process import wait_until
from tests.support.server import WarrenServer
from tests.support.tunnels import GATEWAY, TOKEN, Application, Tunnels, response

AUTH = ("guest", "guest")
BASIC = f"Authorization: Basic {base64.b64encode(b'guest:guest').decode()}"
WAIT_S = 60.0


@pytest.fixture(scope="module")
def server() -> Iterator[WarrenServer]:
    """Not in development mode: loopback addresses are no callbacks, nor is any port but 80, 443."""
    env = {"WARREN_ALLOW_GUEST": "1", "WARREN_TUNNEL_POLL_HOLD_S": "1"}
    with WarrenServer(dev=False, env=env) as server:
        yield server


class Page:
    """An application that answers challenges, and deliveries with the next of `statuses`."""

    def __init__(self, server: WarrenServer, label: str) -> None:
        self.statuses: list[str] = []
        tunnels = Tunnels(server.http_port)
        enrolled = tunnels.ask("POST", f"{GATEWAY}?name={label}&token={TOKEN}", BASIC)
        tunnels.close()
        assert enrolled.status == 201, enrolled.body
        self.private_url, self.url = enrolled.fields["location"], enrolled.link("related")
        self.application = Application(server.http_port, enrolled.link("first"), self._handle)

    def _handle(self, line: str, _: bytes) -> bytes:
        method, target = line.split(" ")[:2]
        query = parse_qs(urlsplit(target).query)
        if method == "GET":
            return response(query["hub.challenge"][0].encode())
        return response(status=self.statuses.pop(0) if self.statuses else "204 No Content")

    def bodies(self) -> list[bytes]:
        return [body for line, body in self.application.seen if line.startswith("POST ")]

    def wait(self, *bodies: bytes) -> None:
        wait_until(lambda: self.bodies() == list(bodies), WAIT_S, f"{bodies}: {self.bodies()}")


@pytest.fixture
def page(server: WarrenServer) -> Iterator[Page]:
    page = Page(server, "page")
    yield page
    page.application.stop()
    httpx.delete(page.private_url)


@pytest.fixture
def http(server: WarrenServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.http_url, auth=AUTH, timeout=WAIT_S) as client:
        client.put("/endpoint/x/news?amqp.exchange_type=topic")
        yield client


def publish(http: httpx.Client, body: bytes) -> None:
    assert http.post("/endpoint/x/news?hub.topic=eu", content=body).status_code == 202


def test_verified_delivered_retried_and_ended(http: httpx.Client, page: Page) -> None:
    form = {"hub.mode": "subscribe", "hub.callback": page.url + "in?a=b", "hub.topic": "eu"}
    subscribed = http.post("/subscribe/x/news", data=form)
    assert subscribed.status_code == 204, subscribed.text
    ((line, _),) = page.application.seen
    assert line.startswith("GET /in?a=b&hub.mode=subscribe&hub.topic=eu&hub.challenge=")
    page.statuses = ["500 Not yet"]
    publish(http, b"one")
    page.wait(b"one", b"one")
    wait_until(lambda: len(attempts(http)) == 2, WAIT_S, "both attempts in the log")
    assert [attempt["status"] for attempt in attempts(http)] == [204, 500]
    page.statuses = ["410 Gone"]
    publish(http, b"two")
    page.wait(b"one", b"one", b"two")
    wait_until(
        lambda: not http.get("/subscriptions").json()["subscriptions"], WAIT_S, "no subscription"
    )


def attempts(http: httpx.Client) -> list[dict[str, object]]:
    """The log of attempts, the newest first."""
    found: list[dict[str, object]] = http.get("/api/hub/attempts").json()["attempts"]
    return found


def test_at_hub_and_over_a_restart(server: WarrenServer, page: Page) -> None:
    with httpx.Client(base_url=server.http_url, auth=AUTH, timeout=WAIT_S) as http:
        topic = f"{server.http_url}/endpoint/x/news?hub.topic=eu"
        form = {"hub.mode": "subscribe", "hub.callback": page.url, "hub.topic": topic}
        assert http.post("/hub", data=form).status_code == 202
        wait_until(
            lambda: "active" in http.get("/subscriptions").text, WAIT_S, "an active subscription"
        )
        server.restart()
        publish(http, b"after a restart")
        page.wait(b"after a restart")


def test_a_release_ends_the_subscriptions(
    server: WarrenServer, http: httpx.Client, page: Page
) -> None:
    """So the label's next application gets nothing that was meant for this one."""
    form = {"hub.mode": "subscribe", "hub.callback": page.url, "hub.topic": "eu"}
    assert http.post("/subscribe/x/news", data=form).status_code == 204
    assert httpx.delete(page.private_url).status_code == 204
    assert http.get("/subscriptions").json()["subscriptions"] == []
    server.restart()
    assert http.get("/subscriptions").json()["subscriptions"] == []
    assert http.get("/", headers={"Host": urlsplit(page.url).netloc}).status_code == 410


def test_callbacks_without_an_application_are_refused(http: httpx.Client, page: Page) -> None:
    for callback, reason in (
        (page.url.replace("page", "nobody"), "the callback answered 404"),
        ("http://127.0.0.1/", "is not public"),
        (page.url.replace("page.", "page.x"), "port"),
    ):
        form = {"hub.mode": "subscribe", "hub.callback": callback, "hub.topic": "eu"}
        refused = http.post("/subscribe/x/news", data=form)
        assert refused.status_code in (400, 422)
        assert reason in refused.json()["detail"], refused.text
