"""Messages of any content type become items."""

from __future__ import annotations

import pytest

from warrenmq.hub.formats.model import Item
from warrenmq.hub.outputs.messages import MAX_ATTACHED_BYTES, CollectedMessage, item_of


def item(content_type: str, body: bytes, routing_key: str = "eu.de", at_s: float = 60) -> Item:
    return item_of(CollectedMessage("m1", routing_key, content_type, body, "news", at_s))


def test_a_json_feed_item_is_kept_unchanged() -> None:
    body = b'{"id": "urn:1", "title": "a", "tags": ["b"], "_own": {"c": 1}}'
    for content_type in ("application/json; charset=utf-8", "application/feed+json", ""):
        found = item(content_type, body)
        assert (found.id, found.title, found.tags) == ("urn:1", "a", ["b"])
        assert found.extensions == {"_own": {"c": 1}}
    assert item("application/json", b'{"id": 7, "url": "http://a.example/"}').id == "7"


@pytest.mark.parametrize(
    ("content_type", "body", "text", "content_html"),
    [
        ("text/plain", b"a", "a", ""),
        ("", b"a", "a", ""),
        ("text/plain; charset=ISO-8859-1", b"\xe4", "ä", ""),
        ("text/plain; charset=none", b"a", "a", ""),
        ("text/html", b"<p>a", "", "<p>a"),
        ("application/json", b"[1]", "[1]", ""),
        ("application/json", b'{"title": "no id"}', '{"title": "no id"}', ""),
        ("application/json", b'{"id": 7, "price": 2}', '{"id": 7, "price": 2}', ""),
        ("application/xml", b"<a/>", "<a/>", ""),
    ],
)
def test_another_body_is_the_content(
    content_type: str, body: bytes, text: str, content_html: str
) -> None:
    found = item(content_type, body)
    assert (found.id, found.title, found.date_published) == ("m1", "eu.de", "1970-01-01T00:01:00Z")
    assert (found.content_text, found.content_html) == (text, content_html)


def test_json_that_is_too_deep_is_text() -> None:
    body = b'{"id": "urn:1", "title": "a", "_own": ' + b"[" * 10_000 + b"]" * 10_000 + b"}"
    assert item("application/json", body).content_text == body.decode()


def test_a_binary_body_becomes_an_attachment() -> None:
    found = item("image/png", b"\x89P", routing_key="")
    assert (found.title, found.content_text) == ("news", "2 bytes of image/png")
    (attachment,) = found.attachments
    assert (attachment.url, attachment.size_in_bytes) == ("data:image/png;base64,iVA=", 2)
    assert item("text/plain", b"\xff").attachments[0].mime_type == "text/plain"
    large = item("image/png", b"x" * (MAX_ATTACHED_BYTES + 1))
    assert (large.content_text, large.attachments) == ("32769 bytes of image/png", [])


def test_a_date_beyond_the_year_9999_is_left_out() -> None:
    assert item("text/plain", b"a", at_s=2.0**62).date_published == ""
