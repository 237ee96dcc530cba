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


def test_internal_headers_are_not_sent() -> None:
    internal: Table = {
        "x-death": [{"queue": "q"}],
        "x-first-death-queue": "hub.retry.2s",
        "x-last-death-reason": "expired",
        "x-hub-id": "msg_1",
    }
    assert shown({**internal, "colour": "red"}) == "colour = red"


def test_long_message_headers_are_left_out() -> None:
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
def test_a_content_encoding_is_sent(encoding: str) -> None:
    headers: dict[str, str] = {}
    add_content(headers, message(content_encoding=encoding))
    assert headers["Content-Encoding"] == encoding


@pytest.mark.parametrize("encoding", [None, "", "utf-8", "gzip\r\nX: 1", "gzip, utf-8", "gzipped"])
def test_an_invalid_content_encoding_is_left_out(encoding: str | None) -> None:
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
def test_the_redelivery_count(
    failures: int, again: bool, table: Table | None, count: str | None
) -> None:
    headers: dict[str, str] = {}
    envelope = Envelope("msg_1", "news", "eu.fr", failures)
    add_redelivered(headers, envelope, message(redelivered=again, headers=table))
    assert headers.get("X-AMQP-Redelivered-Count") == count
    assert headers["X-AMQP-Redelivered"] == ("false" if count is None else "true")


PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_the_trace_context_is_passed_on() -> None:
    table: Table = {"traceparent": PARENT, "tracestate": "a=1,b=2", "kind": "x"}
    headers: dict[str, str] = {}
    add_properties(headers, message(headers=table))
    assert headers == {
        "traceparent": PARENT,
        "tracestate": "a=1,b=2",
        "x-rabbithub-msg_header": "kind = x",
    }


@pytest.mark.parametrize(
    "parent",
    [
        "",
        7,
        PARENT.upper(),
        f"{PARENT}-more",
        PARENT.replace("00-", "ff-", 1),
        PARENT.replace("4bf92f3577b34da6a3ce929d0e0e4736", "0" * 32),
        PARENT.replace("00f067aa0ba902b7", "0" * 16),
        f"{PARENT}\r\nX: 1",
    ],
)
def test_an_invalid_trace_context_is_left_out(parent: str | int) -> None:
    headers: dict[str, str] = {}
    add_properties(headers, message(headers={"traceparent": parent, "tracestate": "a=1"}))
    assert headers == {}


@pytest.mark.parametrize("state", ["", "a=1\n", "a" * 513, "\xe9"])
def test_an_invalid_trace_state_is_left_out(state: str) -> None:
    headers: dict[str, str] = {}
    parent = PARENT.replace("00-", "01-", 1) + "-of-a-later-version"
    add_properties(headers, message(headers={"traceparent": parent, "tracestate": state}))
    assert headers == {"traceparent": parent}
