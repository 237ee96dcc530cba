from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from warrenmq.hub.links.json_feed import read_json_feed

START = b'{"version": "https://jsonfeed.org/version/1.1", "hubs": '


def hubs(text: bytes) -> list[tuple[str, str]]:
    return read_json_feed(START + text + b"}").hubs


def test_hubs_of_websub_count() -> None:
    assert hubs(b'[{"type": "websub", "url": "a"}, {"type": "x", "url": "b"}]') == [("", "a")]


def test_members_of_other_types_are_left_out() -> None:
    for other in (b"1", b"{}", b"[1]", b'[{"type": 1}]', b'"a"', b"null"):
        assert hubs(other) == []
    assert hubs(b'[{"type": "WebSub", "url": 1}]') == [("", "")]


def test_json_that_is_not_utf_8_has_no_links() -> None:
    assert hubs(b'[{"type": "websub", "url": "\xe9"}]') == []


@given(st.binary(max_size=80))
def test_any_bytes_are_parsed_without_an_error(body: bytes) -> None:
    read_json_feed(body)
    hubs(body)
