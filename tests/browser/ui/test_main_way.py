"""The way of a newcomer, in both browsers: from signing in to a webhook that failed and came."""

from __future__ import annotations

from urllib.parse import quote

from tests.browser.browsers import Page
from tests.support.http import Answer, Callback
from tests.support.server import WarrenServer

from .signed_in import SignedInPage

OUTCOMES = "[...document.querySelectorAll('main tbody tr')].map((one) => one.innerText).join(' ')"


def test_from_an_empty_server_to_a_delivered_webhook(
    page: Page, warren: WarrenServer, callback: Callback
) -> None:
    ui = SignedInPage(page, warren)
    ui.open()
    ui.press("Send a sample message", "main")
    ui.shows("First message", "main h1")
    ui.shows(f"clients connect to port {warren.amqp_port}.", "main")
    ui.press("Send a sample message", "main")
    ui.shows("Delivered", "main .state")
    ui.shows('"hello": "world"', "main warren-payload")
    answer = "document.querySelector('main a[target]').getAttribute('href')"
    ui.go(str(page.run(answer)).removeprefix("#"))
    page.wait(f"{OUTCOMES}.match(/Delivered/g).length === 1")

    ui.go("/queues")
    ui.press("New queue", "main")
    ui.fill("name", "incoming")
    ui.press("Create queue", "dialog")
    ui.shows("incoming", "main h1")
    ui.go("/exchanges")
    ui.press("New exchange", "main")
    ui.fill("name", "shop")
    ui.press("Create exchange", "dialog")
    ui.shows("shop", "main h1")
    ui.go("/exchanges/%2F/shop?tab=bindings")
    ui.fill("other", "incoming", "main")
    ui.fill("routing_key", "order.*", "main")
    ui.press("Bind")
    ui.shows("order.*", "main tbody")

    ui.go("/subscriptions")
    ui.press("New subscription", "main")
    ui.fill("callback", callback.url)
    ui.fill("resource_name", "shop")
    ui.press("Subscribe", "dialog")
    ui.shows(callback.url, "main h1")
    callback.script(Answer(503, body=b"not now"))
    ui.go("/exchanges/%2F/shop?tab=publish")
    ui.fill("routing_key", "order.created", "main")
    ui.fill("payload", '{"order": 7}', "main")
    ui.press("Publish message")
    ui.shows("Routed", "main [role=status]")
    ui.go("/queues/%2F/incoming?tab=messages")
    ui.shows('"order": 7', "main warren-payload")
    callback.wait(2, 20)
    ui.go(f"/deliveries?callback={quote(callback.url)}")
    page.wait(f"/retried/.test({OUTCOMES}) && /Delivered/.test({OUTCOMES})")
    page.run(
        "[...document.querySelectorAll('main tbody tr')]"
        ".find((one) => one.innerText.includes('retried')).querySelector('a').click()"
    )
    ui.shows("not now", "main")
    ui.shows('"order": 7', "main")
    page.reload()
    ui.shows("not now", "main")
