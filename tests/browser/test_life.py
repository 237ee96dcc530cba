"""Pages through what happens to pages: restarts, hidden tabs, revoked tokens, saved files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pika
import pytest

from tests.support.process import wait_until
from tests.support.server import WarrenServer

from .browsers import Browser, Page
from .demo_pages import LOGIN, open_demo, post, sign_in

pytestmark = pytest.mark.thorough

TOKENS = "/api/hub/tokens"
SCOPES = [{"read": "x/rabbitlog"}, {"write": "x/rabbitlog"}, {"tunnel": "ada"}]

READ = """
(async () => {
  const { stream } = await import('/js/warren.js');
  globalThis.seen = [];
  (async () => {
    const messages = stream({ from: 'q/diary', auth: '%s', cursor: %s });
    for await (const { body } of messages) globalThis.seen.push(body);
  })();
})()
"""


@pytest.fixture
def http(warren: WarrenServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=warren.http_url, auth=LOGIN) as client:
        yield client


def log_page(page: Page, hub_url: str) -> Page:
    open_demo(page, hub_url, "rabbitlog")
    page.wait("!document.querySelector('#ways').hidden")
    return page


def stream_page(
    page: Page, http: httpx.Client, hub_url: str, kind: str = "stream", cursor: str = "'first'"
) -> Page:
    """Collects the bodies of a stream, or of a queue of another kind, in `seen`."""
    http.delete("/endpoint/q/diary")  # of the other browser
    http.put(f"/endpoint/q/diary?arg.x-queue-type={kind}").raise_for_status()
    made = http.post(TOKENS, json={"name": "reader", "scopes": [{"read": "q/diary"}]}).json()
    page.open(f"{hub_url}demos/driver.html")
    page.run(READ % (made["token"], cursor))
    return page


def live_page(page: Page, hub_url: str) -> Page:
    page.open(f"{hub_url}demos/live.html")
    page.click("#choose button")
    sign_in(page)
    page.shows("Connected", "#state")
    return page


def test_pages_go_on_after_a_restart(
    browser: Browser, http: httpx.Client, warren: WarrenServer, hub_url: str
) -> None:
    """One that is a subscriber, one that reads an exchange, and one that reads a stream: that one
    misses nothing, and gets nothing twice."""
    reader = stream_page(browser.new_page(), http, hub_url)
    pages = {
        "x/rabbitlog": log_page(browser.new_page("window"), hub_url),
        "x/amq.topic": live_page(browser.new_page("window"), hub_url),
    }
    for number in range(3):
        post(warren, "q/diary", "", f"{number}")
    reader.wait("globalThis.seen.length === 3")
    warren.stop()
    for page in pages.values():
        page.shows("Reconnecting", "#state")
    warren.start()
    for number in range(3, 6):
        post(warren, "q/diary", "", f"{number}")
    for exchange, page in pages.items():
        page.shows("Connected", "#state")
        post(warren, exchange, "after", "the restart")
        page.shows("the restart", "#log")
        page.errors.clear()  # browsers report each attempt that failed
    reader.wait("globalThis.seen.length >= 6")
    assert reader.run("globalThis.seen") == [f"{number}" for number in range(6)]
    reader.errors.clear()


@pytest.mark.parametrize("kind", ["stream", "classic"])
def test_no_request_of_a_reader_fails(
    page: Page, http: httpx.Client, warren: WarrenServer, hub_url: str, kind: str
) -> None:
    """Whether or not its queue is a stream: the console would say so."""
    reader = stream_page(page, http, hub_url, kind, cursor="undefined")
    is_read = "\nwarren_live_readers 1\n"
    wait_until(lambda: is_read in http.get("/metrics").text, 60, "the page reads")
    post(warren, "q/diary", "", "1")
    reader.wait("globalThis.seen.length === 1")


def test_a_hidden_tab_is_served(browser: Browser, warren: WarrenServer, hub_url: str) -> None:
    hidden = log_page(browser.new_page(), hub_url)
    browser.new_page().show()
    hidden.wait("document.hidden")
    for number in range(3):
        post(warren, "x/rabbitlog", "hidden", f"message {number}")
        hidden.wait(f"document.querySelector('#log').textContent.includes('message {number}')")


def test_a_revoked_token_signs_out(
    page: Page, http: httpx.Client, warren: WarrenServer, hub_url: str
) -> None:
    live_page(page, hub_url)
    for token in http.get(TOKENS).json():
        http.delete(f"{TOKENS}/{token['id']}").raise_for_status()
    page.shows("Signed out", "#state")
    page.shows("revoked", "#sign-in")
    sign_in(page)
    page.shows("Connected", "#state")
    page.errors.clear()  # the refused attempt


def test_a_saved_page_runs_from_the_disk(
    page: Page, http: httpx.Client, warren: WarrenServer, hub_url: str, tmp_path: Path
) -> None:
    saved = tmp_path / "rabbitlog.html"
    saved.write_bytes(httpx.get(f"{hub_url}demos/rabbitlog.html").content)
    http.put("/endpoint/x/rabbitlog?amqp.exchange_type=topic").raise_for_status()
    made = http.post(TOKENS, json={"name": "disk", "scopes": SCOPES}).raise_for_status().json()
    page.open(saved.as_uri())
    page.wait("document.querySelector('#sign-in [name=token]')")
    page.shows("curl -u guest:guest", "#sign-in")
    page.type("#sign-in [name=label]", "ada")
    page.type("#sign-in [name=token]", made["token"], enter=True)
    page.shows("Connected", "#state")
    page.wait("!document.querySelector('#ways').hidden")
    with pika.BlockingConnection(pika.URLParameters(warren.amqp_url)) as connection:
        connection.channel().basic_publish("rabbitlog", "greetings", b"to a file")
    page.shows("to a file", "#log")
    answer = http.get("/", headers={"Host": f"ada.tun.localhost:{warren.http_port}"})
    assert answer.text == "I am a web page, and have logged 1 messages.\n"
    saved.write_bytes(httpx.get(f"{hub_url}demos/tiny.html").content)
    page.open(saved.as_uri())
    page.shows("curl -u guest:guest", "#sign-in")
    assert "exchange_type" not in page.text()  # amq.topic is there already


def test_a_closed_page_gives_its_label_back(
    browser: Browser, http: httpx.Client, hub_url: str
) -> None:
    page = log_page(browser.new_page(), hub_url)
    label = page.run("new URL(document.querySelector('#address a').href).hostname.split('.')[0]")
    accept = {"accept": "application/json"}
    assert label in http.get("/reversehttp", headers=accept).text
    page.open(f"{hub_url}demos/")
    wait_until(
        lambda: label not in http.get("/reversehttp", headers=accept).text, 10, f"end of {label}"
    )
