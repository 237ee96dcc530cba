"""The feeds that are published, and read in what hubs send."""

from __future__ import annotations

import pytest

from warrenmq.app.conformance.feeds import Entry, atom, read, rss
from warrenmq.app.conformance.results import Failed

URL = "http://me.example/feed"
ENTRIES = [Entry("urn:1", "one"), Entry("urn:2", "two")]


def test_atom() -> None:
    found = read(atom(URL, ENTRIES))
    assert found.entries == ENTRIES
    assert found.own == {
        "id": URL,
        "title": "Conformance",
        "updated": "2026-01-01T00:00:00Z",
        "name": "Tester",
    }


def test_rss() -> None:
    found = read(rss(URL, ENTRIES))
    assert found.entries == ENTRIES
    assert found.own == {"title": "Conformance", "link": URL, "description": "Checks"}


@pytest.mark.parametrize("body", [b"", b"<feed>", b"{}", b"<!DOCTYPE a><feed/>"])
def test_what_is_no_feed(body: bytes) -> None:
    with pytest.raises(Failed, match="can't be read"):
        read(body)
