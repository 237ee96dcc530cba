"""The hub's pages: subscriptions, deliveries and dead letters, as their users work with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.support.http import Answer, Callback
from tests.support.process import wait_until
from tests.support.server import WarrenServer

from .signed_in import SignedInPage

pytestmark = pytest.mark.thorough

EXCHANGE = "orders"
HOSTILE = "<img src=x onerror=window.harmed=1>"
CHIP = "[...document.querySelectorAll('.chips button')].find((one) => one.title === '{}')"
MENU = "document.querySelector('tbody button[aria-haspopup]')"


@pytest.fixture
def api(warren: WarrenServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{warren.http_url}/api", auth=("guest", "guest")) as client:
        client.put(f"/exchanges/%2F/{EXCHANGE}", json={"type": "topic"}).raise_for_status()
        yield client
        for one in client.get("/hub/subscriptions").json()["subscriptions"]:
            client.delete(f"/hub/subscriptions/{one['id']}").raise_for_status()
        client.post("/hub/dead-letters/delete", json={"all": True}).raise_for_status()


def _subscribe(api: httpx.Client, url: str, **more: Any) -> str:
    body = {"vhost": "/", "resource_type": "exchange", "resource_name": EXCHANGE, "topic": "#"}
    api.post("/hub/subscriptions", json={**body, "callback": url, **more}).raise_for_status()
    return str(_subscriptions(api)[0]["id"])


def _subscriptions(api: httpx.Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api.get("/hub/subscriptions").json()["subscriptions"]
    return found


def _publish(api: httpx.Client, *bodies: str) -> None:
    for body in bodies:
        message = {"properties": {}, "routing_key": "eu", "payload": body}
        message["payload_encoding"] = "string"
        url = f"/exchanges/%2F/{EXCHANGE}/publish"
        api.post(url, json=message).raise_for_status()


def _wait_dead(api: httpx.Client, count: int) -> list[dict[str, Any]]:
    def found() -> Any:
        return api.get("/hub/dead-letters").json()["dead_letters"]

    wait_until(lambda: len(found()) == count, 20, f"{count} dead letters")
    return list(found())


def _wait_attempts(api: httpx.Client, subscription: str, count: int) -> None:
    def found() -> int:
        query = {"subscription": subscription}
        return len(api.get("/hub/attempts", params=query).json()["attempts"])

    wait_until(lambda: found() >= count, 20, f"{count} attempts in the log")


def test_a_callback_is_subscribed_paused_renewed_and_ended(
    ui: SignedInPage, api: httpx.Client, callback: Callback
) -> None:
    ui.go("/subscriptions")
    ui.shows("No callback is subscribed yet", "main")
    ui.press("Subscribe a callback", "main")
    ui.fill("callback", callback.url)
    ui.fill("resource_name", EXCHANGE)
    secret = ui.page.run("document.querySelector('dialog [name=secret]').value")
    ui.press("Subscribe", "dialog")
    ui.shows(callback.url, "main h1")
    ui.shows("Nothing sent yet", ".named")
    _publish(api, "hello")
    assert "webhook-signature" in callback.wait(1, 20)[0].headers
    assert secret.startswith("whsec_")
    ui.shows("Delivering", ".named")
    ui.press("Pause", "main")
    ui.shows("Paused", ".named")
    assert _subscriptions(api)[0]["status"] == "inactive"
    ui.press("Resume", "main")
    ui.shows("Delivering", ".named")
    ui.press("Renew", "main")
    ui.fill("lease_seconds", "604800")
    ui.press("Renew", "dialog")
    ui.shows("7 d", "main")
    assert _subscriptions(api)[0]["lease_seconds"] == 604800
    ui.press("End", "main")
    ui.press(f"End the subscription of {callback.url}", "dialog")
    ui.page.wait("document.querySelector('main h1').textContent === 'Subscriptions'")
    assert not _subscriptions(api)


def test_the_list_of_subscriptions_has_their_acts(
    ui: SignedInPage, api: httpx.Client, callback: Callback
) -> None:
    _subscribe(api, callback.url)
    ui.go("/subscriptions")
    ui.page.act(MENU, "one.click()")
    ui.press("Pause", ".acts")
    ui.shows("Paused", "tbody")
    ui.page.act(MENU, "one.click()")
    ui.press("Resume", ".acts")
    ui.shows("Nothing sent yet", "tbody")
    ui.page.act(MENU, "one.click()")
    ui.press("Deliveries", ".acts")
    ui.page.wait("document.querySelector('main h1').textContent === 'Deliveries'")


def test_a_strict_subscription_says_what_blocks_it(
    ui: SignedInPage, api: httpx.Client, callback: Callback
) -> None:
    callback.default = Answer(500)
    number = _subscribe(api, callback.url, options={"order": "strict"})
    _publish(api, "hello")
    callback.wait(1, 20)
    ui.go(f"/subscriptions/{number}")
    ui.shows("Blocked", ".named")
    ui.shows("later messages wait for", "main")
    api.post(f"/hub/subscriptions/{number}/pause").raise_for_status()
    ui.shows("Next try: waits until the subscription is resumed", "main")


def test_deliveries_are_found_by_callback_outcome_and_answer(
    ui: SignedInPage, api: httpx.Client, callback: Callback
) -> None:
    callback.script(200, Answer(500, body=HOSTILE.encode()))
    number = _subscribe(api, f"{callback.url}?{quote(HOSTILE)}")
    _publish(api, "one", "two")
    _wait_attempts(api, number, 2)
    ui.page.resize(1200, 800)
    ui.go(f"/deliveries?subscription={number}")
    ui.shows("500 Internal Server Error", "tbody")
    table = "document.querySelector('main .scroll')"
    assert ui.page.run(f"{table}.scrollWidth <= {table}.clientWidth"), "a column is cut"
    ui.go(f"/deliveries?subscription={number}&outcome=retried")
    ui.shows("500 Internal Server Error", "tbody")
    assert ui.page.run("document.querySelectorAll('tbody tr').length") == 1
    ui.page.act(CHIP.format("Delivered"), "one.click()")
    ui.shows("200 OK", "tbody")
    assert "outcome=delivered" in ui.page.run("location.hash")
    assert ui.page.run("window.harmed ?? null") is None


def test_dead_letters_are_read_replayed_and_deleted(
    ui: SignedInPage, api: httpx.Client, callback: Callback
) -> None:
    callback.script(*[Answer(508)] * 4)  # a loop: given up at once
    number = _subscribe(api, callback.url)
    _publish(api, HOSTILE, "two", "three", "four")
    letters = _wait_dead(api, 4)
    ui.go(f"/dead-letters/%2F/{letters[0]['id']}")
    ui.shows("508", ".named")
    ui.shows(HOSTILE, "warren-payload")
    ui.press("Replay", "main")
    assert callback.wait(5, 20)[-1].body == HOSTILE.encode()
    ui.page.wait("document.querySelector('main h1')?.textContent === 'Dead letters'")

    ui.go(f"/dead-letters?subscription={number}")
    ui.press("Replay all 3", "main")
    ui.press("Cancel", "dialog")
    ui.page.wait("document.querySelectorAll('tbody input').length === 3")
    ui.page.click("tbody input")
    ui.press("Replay 1", "main")
    ui.press("Replay 1 dead letter", "dialog")
    callback.wait(6, 20)
    ui.press("Delete all 2", "main")
    ui.press("Delete 2 dead letters", "dialog")
    ui.shows("No dead letters match this filter", "main")
    assert not _wait_dead(api, 0)


def test_a_token_is_made_shown_once_and_revoked(
    ui: SignedInPage, api: httpx.Client, warren: WarrenServer
) -> None:
    ui.go("/tokens")
    ui.press("New token", "main")
    ui.fill("name", HOSTILE)
    field = "document.querySelector('dialog .row input')"
    ui.page.act(field, "one.value = 'order*'")
    ui.press("Create token", "dialog")
    ui.shows("shown this once", "dialog")
    secret = ui.page.run("document.querySelector('dialog pre').textContent")
    ui.press("I have copied it", "dialog")
    headers = {"Authorization": f"Bearer {secret}"}
    url = f"{warren.http_url}/endpoint/x/{EXCHANGE}"
    assert httpx.post(url, headers=headers, content=b"no").status_code == 403  # it may read only
    assert api.get("/hub/tokens").json()[0]["scopes"] == [{"read": "x/order*", "vhost": "/"}]
    ui.shows(HOSTILE, "tbody")
    ui.press("Revoke", "main")
    ui.press(f"Revoke the token {HOSTILE}", "dialog")
    ui.shows("No token yet", "main")
    assert api.get("/hub/tokens").json() == []


def test_a_url_to_publish_to_is_made_and_revoked(ui: SignedInPage, api: httpx.Client) -> None:
    ui.go("/tokens?tab=urls")
    ui.press("New URL", "main")
    ui.fill("name", EXCHANGE)
    ui.fill("note", "the shop")
    ui.press("Create URL", "dialog")
    ui.shows("shown this once", "dialog")
    url = ui.page.run("document.querySelector('dialog pre').textContent")
    assert httpx.post(url, content=b"hello").status_code == 202
    ui.press("I have copied it", "dialog")
    ui.shows("the shop", "tbody")
    ui.press("Revoke", "main")
    ui.press(f"Revoke the URL for {EXCHANGE}", "dialog")
    ui.shows("No URL yet", "main")
    assert httpx.post(url, content=b"hello").status_code == 410


def test_an_attempt_shows_its_request_and_is_sent_again(
    ui: SignedInPage, api: httpx.Client, callback: Callback
) -> None:
    callback.script(Answer(503, {"Retry-After": "3600"}, b"busy"))
    number = _subscribe(api, callback.url, options={"order": "strict"})
    _publish(api, HOSTILE)
    _wait_attempts(api, number, 1)
    ui.go(f"/deliveries?subscription={number}")
    ui.page.click("tbody a")
    ui.shows("Attempt 1 for", "main h1")
    ui.shows("webhook-id", "dl.headers")
    ui.shows(HOSTILE, "warren-payload")
    ui.shows("busy", "main .grid")
    ui.press("Resend", "main")
    assert callback.wait(2, 20)[1].body == HOSTILE.encode()
    ui.shows("Delivered", ".timeline")
    assert ui.page.run("document.querySelectorAll('.timeline li').length") == 2


def test_what_a_filter_finds_is_sent_again_after_its_count(
    ui: SignedInPage, api: httpx.Client, callback: Callback
) -> None:
    callback.script(*[Answer(508)] * 3)
    number = _subscribe(api, callback.url)
    _publish(api, "one", "two", "three")
    _wait_dead(api, 3)
    _wait_attempts(api, number, 3)
    ui.go(f"/deliveries?subscription={number}&status=5xx")
    ui.press("Resend all that match", "main")
    ui.shows("status 5xx", "dialog")
    ui.press("Resend 3 messages", "dialog")
    assert {one.body for one in callback.wait(6, 20)[3:]} == {b"one", b"two", b"three"}
    _wait_dead(api, 0)
    _wait_attempts(api, number, 6)
    ui.go(f"/deliveries?subscription={number}")
    ui.shows("3 of 6 attempts failed: 3 given up. 3 were accepted.", "main .heading")
    ui.page.act(CHIP.format("Failed for good"), "one.click()")
    ui.page.wait("document.querySelectorAll('tbody input').length === 3")
    ui.page.click("tbody input")
    ui.press("All here", "main")
    ui.press("Resend 3 attempts", "main")
    ui.press("Resend 3 messages", "dialog")
    callback.wait(9, 20)


def test_a_test_event_shows_what_was_sent_and_answered(
    ui: SignedInPage, api: httpx.Client, callback: Callback
) -> None:
    callback.script(Answer(418, body=b"short and stout"))
    ui.go(f"/subscriptions/{_subscribe(api, callback.url)}")
    ui.press("Send a test", "main")
    ui.fill("body", HOSTILE)
    ui.press("Send", "dialog")
    ui.shows("418", "dialog")
    ui.shows("short and stout", "dialog")
    sent = callback.wait(1, 20)[0]
    assert (sent.body, sent.headers["X-Hub-Test"]) == (HOSTILE.encode(), "true")
    ui.press("Cancel", "dialog")


def test_a_callback_that_has_not_agreed_is_asked(
    ui: SignedInPage, api: httpx.Client, callback: Callback
) -> None:
    ui.go(f"/subscriptions/{_subscribe(api, callback.url, status='inactive')}")
    ui.shows("Not confirmed", ".named")
    ui.press("Ask it now", "main")
    ui.shows("Nothing sent yet", ".named")
    assert _subscriptions(api)[0]["status"] == "active"
    assert len(callback.verifications) == 1
