"""Audits of the pages of connections, deliveries, dead letters and feeds, with hostile texts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from urllib.parse import quote

import httpx
import pika
import pytest

from tests.support.feed_site import FeedSite, Page
from tests.support.http import Answer, Callback
from tests.support.process import wait_until
from tests.support.server import WarrenServer

from .axe import THEMES, audit
from .signed_in import SignedInPage

HOSTILE = '<img src=x onerror="window.harmed=1">\'&amp;'
FEED = f"""<rss version="2.0"><channel><title>{HOSTILE.replace("<", "&lt;")}</title>
<item><guid>1</guid><title>{HOSTILE.replace("<", "&lt;")}</title>
<description><![CDATA[{HOSTILE}<script>window.harmed = 1</script>]]></description></item>
</channel></rss>"""
LIMIT_S = 60.0


@pytest.fixture(scope="module")
def addresses(warren: WarrenServer) -> Iterator[list[str]]:
    """Addresses of one page of each kind, whose objects were made by real traffic."""
    with ExitStack() as stack:
        api = stack.enter_context(
            httpx.Client(base_url=f"{warren.http_url}/api", auth=("guest", "guest"))
        )
        callback = stack.enter_context(Callback())
        site = stack.enter_context(FeedSite())
        yield [
            *_connected(stack, warren, api),
            *_given_up(api, callback),
            *_polled(api, site),
        ]


def _found(api: httpx.Client, path: str, key: str) -> Any:
    """Returns the first of a list, as soon as it has one."""

    def listed() -> list[Any]:
        found = api.get(path).raise_for_status().json()
        return list(found if isinstance(found, list) else found[key])

    wait_until(lambda: bool(listed()), LIMIT_S, f"{path} has one")
    return listed()[0]


def _connected(stack: ExitStack, warren: WarrenServer, api: httpx.Client) -> list[str]:
    parameters = pika.ConnectionParameters("127.0.0.1", warren.amqp_port)
    parameters.client_properties = {"connection_name": HOSTILE, "note": HOSTILE}
    channel = stack.enter_context(pika.BlockingConnection(parameters)).channel()
    channel.queue_declare(f"jobs {HOSTILE}")
    channel.basic_consume(f"jobs {HOSTILE}", lambda *_: None, consumer_tag=HOSTILE)
    connection, opened = _found(api, "/connections", ""), _found(api, "/channels", "")
    return [
        f"/connections/{quote(connection['name'], safe='')}",
        f"/channels/{quote(opened['name'], safe='')}",
    ]


def _given_up(api: httpx.Client, callback: Callback) -> list[str]:
    callback.default = Answer(508, {"X-Note": "<b>"}, HOSTILE.encode())  # a loop: given up at once
    body = {"vhost": "/", "resource_type": "exchange", "resource_name": "amq.topic", "topic": "#"}
    api.post("/hub/subscriptions", json={**body, "callback": callback.url}).raise_for_status()
    message = {
        "properties": {"headers": {"h": HOSTILE}}, "routing_key": HOSTILE, "payload": HOSTILE,
        "payload_encoding": "string",
    }  # fmt: skip
    api.post("/exchanges/%2F/amq.topic/publish", json=message).raise_for_status()
    letter = _found(api, "/hub/dead-letters", "dead_letters")
    attempt = _found(api, "/hub/attempts", "attempts")
    return [f"/dead-letters/%2F/{letter['id']}", f"/deliveries/{attempt['id']}"]


def _polled(api: httpx.Client, site: FeedSite) -> list[str]:
    site.pages["/feed"] = Page(FEED.encode())
    feed = {"name": "hostile", "url": f"{site.url}/feed"}
    api.post("/hub/feeds", json=feed).raise_for_status()
    output = {"sources": [{"feed": "hostile"}], "title": HOSTILE}
    api.put("/hub/outputs/all", json=output).raise_for_status()
    return ["/feeds/%2F/hostile", "/outputs/%2F/all"]


@pytest.mark.parametrize("theme", THEMES)
def test_no_page_has_a_violation(
    tab: SignedInPage, axe: str, addresses: list[str], theme: str
) -> None:
    for address in addresses:
        audit(tab, axe, address, theme)
