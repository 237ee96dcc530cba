"""Which items are the same, and which contents."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from warrenmq.hub.formats.identity import digest_of, identified
from warrenmq.hub.formats.model import Attachment, Item

CONTENT = (
    '<p class="a">Text <a href="https://e.example/a">link</a><img src="https://e.example/b"></p>'
)


def ids(*items: Item) -> list[str]:
    return [one.item.id for one in identified(items)]


def test_without_an_id_the_url_counts_and_then_the_content() -> None:
    first, second = ids(Item(id="", url="https://e.example/1"), Item(id="", title="a"))
    assert first == "https://e.example/1" and second.startswith("urn:warren:")
    assert ids(Item(id="", title="a")) == [second] != ids(Item(id="", title="b"))


def test_repeated_ids_are_told_apart_by_url_and_content() -> None:
    old, new = Item(id="a", url="x:1", title="1"), Item(id="a", url="x:2", title="2")
    newer = Item(id="a", url="x:2", title="3")
    assert ids(replace(new), replace(old)) == ["a#x:2", "a#x:1"]
    third, second, first = ids(newer, new, old)
    assert third != second and third[:6] == second[:6] == "a#x:2#" and first == "a#x:1"
    assert ids(Item(id="a", title="1"), Item(id="a", title="1")) == ["a"]


@pytest.mark.parametrize("name", ["a\0b", "é" * 600])
def test_an_id_that_no_index_takes_becomes_a_digest(name: str) -> None:
    (found,) = ids(Item(id=name))
    assert found.startswith("urn:warren:") and len(found) < 100
    assert ids(Item(id=name)) == [found] != ids(Item(id=name + "c"))


@pytest.mark.parametrize(
    "other",
    [
        Item(id="x", date_published="2026-01-01T00:00:00Z", content_html=CONTENT),
        Item(id="x", content_html=CONTENT.replace('class="a"', 'id="z"')),
        Item(id="x", content_html=CONTENT.replace("/a", "/a?utm_source=feed")),
        Item(id="x", content_html=CONTENT.replace("/b", "/b?cache=123")),
        Item(id="x", content_html=CONTENT + '<img src="https://t.example/1" width="1">'),
        Item(id="x", content_html=f"<!-- 12:00 -->{CONTENT}\n"),
        Item(id="x", content_html=CONTENT, tags=["new"]),
    ],
)
def test_cosmetic_changes_keep_the_digest(other: Item) -> None:
    assert digest_of(other) == digest_of(Item(id="x", content_html=CONTENT))


@pytest.mark.parametrize(
    "other",
    [
        Item(id="x", content_html=CONTENT, title="t"),
        Item(id="x", content_html=CONTENT, summary="s"),
        Item(id="x", content_html=CONTENT, url="https://e.example/"),
        Item(id="x", content_html=CONTENT.replace("Text", "Other text")),
        Item(id="x", content_html=CONTENT.replace("/a", "/a?page=2")),
        Item(id="x", content_html=CONTENT.replace("/b", "/c")),
        Item(id="x", content_html=CONTENT, attachments=[Attachment("https://e.example/1.mp3")]),
    ],
)
def test_changes_of_content_change_the_digest(other: Item) -> None:
    assert digest_of(other) != digest_of(Item(id="x", content_html=CONTENT))
