"""Topics of other sites and upstreams in the web UI."""

from __future__ import annotations

import httpx
import pytest

from tests.support.http import Callback
from tests.support.server import WarrenServer

from .signed_in import SignedInPage

pytestmark = pytest.mark.thorough


def test_a_topic_is_listed_and_fetched_anew(
    ui: SignedInPage, warren: WarrenServer, callback: Callback
) -> None:
    ui.go("/topics")
    ui.shows("Nobody follows a page of another site", "main")
    topic = f"{callback.url}/page"
    fields = {"hub.mode": "subscribe", "hub.topic": topic, "hub.callback": callback.url}
    httpx.post(f"{warren.http_url}/hub", data=fields, timeout=30).raise_for_status()
    ui.shows(topic, "main tbody")
    ui.press("Fetch now", "main tbody")
    ui.shows(f"{topic} is fetched now.", ".messages")


def test_an_upstream_is_added_and_ended(ui: SignedInPage, callback: Callback) -> None:
    ui.go("/topics?tab=upstreams")
    ui.press("New upstream", "main")
    ui.fill("url", callback.url)
    ui.fill("name", "news")
    ui.fill("sink", "amq.topic")
    ui.press("Subscribe", "dialog")
    ui.shows("Added the upstream news", ".messages")
    ui.shows("amq.topic", "main tbody")
    ui.press("End", "main tbody")
    ui.press("End the upstream news", "dialog")
    ui.shows("No upstream yet", "main")
