from __future__ import annotations

import pytest

from warrenmq.core.message.model import Message, Properties, Table
from warrenmq.hub.delivery.envelope import Envelope
from warrenmq.hub.delivery.headers import (
    add_content,
    add_properties,
    add_redelivered,
    header_value,
)

ENVELOPE = Envelope("msg_1", "news", "eu.fr")


def message(redelivered: bool = False, **properties: object) -> Message:
    return Message("news", "eu.fr", Properties(**properties), b"x", redelivered)  # type: ignore[arg-type]


def shown(table: Table) -> str | None:
    headers: dict[str, str] = {}
    add_properties(headers, message(headers=table))
    return headers.get("x-rabbithub-msg_header")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a.b-c%20 #*", "a.b-c%20 #*"),
        ("caf\u00e9", "caf%C3%A9"),
        ("a\r\nb", "a%0D%0Ab"),
        ("100% caf\u00e9", "100%25 caf%C3%A9"),
        ("\x7f", "%7F"),
    ],
)
def test_names_in_headers(text: str, value: str) -> None:
    assert header_value(text) == value


def test_message_headers_that_are_strings() -> None:
    assert shown({"a": "1", "b": "x y", "n": 3}) == "a = 1, b = x y"
    assert shown({"n": 3}) is None


def test_what_belongs_to_the_broker_or_the_hub_is_not_shown() -> None:
    internal: Table = {
        "x-death": [{"queue": "q"}],
        "x-first-death-queue": "hub.retry.2s",
        "x-last-death-reason": "expired",
        "x-hub-id": "msg_1",
    }
    assert shown({**internal, "colour": "red"}) == "colour = red"


def test_line_ends_in_message_headers() -> None:
    assert shown({"a\r\nX-Evil": "1\r\n2"}) == "a%0D%0AX-Evil = 1%0D%0A2"


def test_message_headers_that_are_too_long_are_left_out() -> None:
    assert shown({"big": "x" * 5_000, "small": "1"}) == "small = 1"
    text = shown({f"h{number}": "x" * 100 for number in range(1_000)})
    assert text is not None and 3_900 < len(text) <= 4_096


def test_ids_of_the_publisher() -> None:
    headers: dict[str, str] = {}
    add_properties(headers, message(message_id="m\r1", correlation_id="c"))
    assert headers == {"message-id": "m%0D1", "correlation-id": "c"}


@pytest.mark.parametrize(
    "encoding", ["gzip", "GZIP", "x-gzip", "X-Compress", "zstd", "br", "aes128gcm", "deflate, Gzip"]
)
def test_a_content_encoding_goes_along_as_it_was_given(encoding: str) -> None:
    headers: dict[str, str] = {}
    add_content(headers, message(content_encoding=encoding))
    assert headers["Content-Encoding"] == encoding


@pytest.mark.parametrize("encoding", [None, "", "utf-8", "gzip\r\nX: 1", "gzip, utf-8", "gzipped"])
def test_what_is_no_content_encoding_stays_behind(encoding: str | None) -> None:
    headers: dict[str, str] = {}
    add_content(headers, message(content_encoding=encoding))
    assert "Content-Encoding" not in headers


@pytest.mark.parametrize(
    ("failures", "again", "table", "count"),
    [
        (0, False, None, None),
        (3, False, None, "3"),
        (0, True, None, "1"),
        (0, True, {"x-delivery-count": 4}, "4"),
        (0, True, {"x-delivery-count": "4"}, "1"),
    ],
)
def test_how_often_it_was_delivered_before(
    failures: int, again: bool, table: Table | None, count: str | None
) -> None:
    headers: dict[str, str] = {}
    envelope = Envelope("msg_1", "news", "eu.fr", failures)
    add_redelivered(headers, envelope, message(redelivered=again, headers=table))
    assert headers.get("X-AMQP-Redelivered-Count") == count
    assert headers["X-AMQP-Redelivered"] == ("false" if count is None else "true")
