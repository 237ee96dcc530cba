from __future__ import annotations

import json

from warrenmq.hub.topics.entries import MAX_ENTRIES
from warrenmq.hub.topics.json_items import JsonFeed, read_json_feed

VERSION = "https://jsonfeed.org/version/1.1"


def feed(*items: str) -> JsonFeed:
    found = read_json_feed(body(*items))
    assert found is not None
    return found


def body(*items: str) -> bytes:
    inside = ", ".join(items)
    return f'{{"version": "{VERSION}", "title": "caf\\u00e9",  "items": [{inside}]}}'.encode()


def test_names() -> None:
    found = feed(
        '{"id": "1", "url": "u"}', '{"id": 2.50}', '{"url": "u"}', '{"title": "t"}'
    ).entries
    assert [entry.name for entry in found[:3]] == ["1", "2.5", "u"]
    assert found[3].name == found[3].digest


def test_the_content_of_an_item() -> None:
    base, same, other = feed(
        '{"id": "1", "title": "t", "date_modified": "1"}',
        '{"title": "\\u0074", "id": "1", "date_modified": "2"}',
        '{"id": "1", "title": "t", "content_text": "x"}',
    ).entries
    assert base.digest == same.digest != other.digest


def test_only_keeps_the_selected_items_byte_for_byte() -> None:
    items = ['{"id":"1", "n": 1.50}', '{"id":"2","t":"\\u00e9" }', '{"id":"3"}']
    kept = feed(*items).only([False, True, False])
    assert json.loads(kept) == json.loads(body(items[1]))
    assert b'"caf\\u00e9"' in kept and b'{"id":"2","t":"\\u00e9" }' in kept


def test_items_beyond_the_limit_are_left_out() -> None:
    found = feed(*(f'{{"id": "{number}"}}' for number in range(MAX_ENTRIES + 1)))
    assert found.has_more and len(found.entries) == MAX_ENTRIES
    assert len(json.loads(found.only([True] * MAX_ENTRIES))["items"]) == MAX_ENTRIES


def test_other_documents() -> None:
    for other in (
        b"", b"[]", b'{"items": []}', b'{"version": 1, "items": []}', b"[" * 100_000,
        b'{"version": "1", "items": []}', body('"text"'), body("[" * 100_000), b"\xff",
        b'{"\xe9": 1}', b'{"version": "\xe9"}', body('{"title": "\u00e9"}').replace(b"\xc3", b""),
    ):  # fmt: skip
        assert read_json_feed(other) is None
    assert read_json_feed(b"\xef\xbb\xbf" + body()) is not None
