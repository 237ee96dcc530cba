from __future__ import annotations

import base64
import json
from datetime import UTC, datetime

import pytest

from warrenmq.core.message.model import Message, Properties
from warrenmq.hub.delivery.cloudevents import (
    attributes,
    binary_headers,
    own_attributes,
    structured_body,
)
from warrenmq.hub.delivery.envelope import Envelope

ARRIVED_AT = 1_700_000_000.125
ENVELOPE = Envelope("msg_1", "news", "eu.fr")


def message(**properties: object) -> Message:
    return Message("news", "eu.fr", Properties(**properties), b"x")  # type: ignore[arg-type]


def test_attributes_of_a_plain_message() -> None:
    assert attributes("http://h/endpoint/x/news", ENVELOPE, message(), ARRIVED_AT) == {
        "specversion": "1.0",
        "id": "msg_1",
        "source": "http://h/endpoint/x/news",
        "type": "warren.message",
        "subject": "eu.fr",
        "time": "2023-11-14T22:13:20.125Z",
    }


def test_type_and_time_come_from_the_message() -> None:
    given = attributes(
        "/s", ENVELOPE, message(type="com.example.sold", timestamp=1_600_000_000), 0.0
    )
    assert given["type"] == "com.example.sold"
    assert given["time"] == "2020-09-13T12:26:40Z"


@pytest.mark.parametrize("timestamp", [2**63, 2**64 - 1, 10**12])
def test_the_arrival_replaces_an_invalid_timestamp(timestamp: int) -> None:
    given = attributes("/s", ENVELOPE, message(timestamp=timestamp), ARRIVED_AT)
    assert given["time"] == "2023-11-14T22:13:20.125Z"


def test_an_empty_subject_is_left_out() -> None:
    assert "subject" not in attributes("/s", Envelope("msg_1", "", ""), message(), 0.0)


def test_values_in_headers() -> None:
    """The example of the HTTP protocol binding, 3.1.3.2."""
    given = {"id": "1", "subject": "Euro \u20ac \U0001f600", "type": 'a"b%c'}
    assert binary_headers(given) == {
        "ce-id": "1",
        "ce-subject": "Euro%20%E2%82%AC%20%F0%9F%98%80",
        "ce-type": "a%22b%25c",
    }


@pytest.mark.parametrize(
    ("content_type", "body", "expected"),
    [
        ("application/json", b'{"a": [1, 2]}', {"data": {"a": [1, 2]}}),
        ("application/problem+json; charset=utf-8", b"1", {"data": 1}),
        ("text/plain", "caf\u00e9".encode(), {"data": "caf\u00e9"}),
        ("application/octet-stream", b"\x00\xff", {"data_base64": "AP8="}),
        ("application/xml", b"<a/>", {"data_base64": "PGEvPg=="}),
        ("application/json", b"{", {"data_base64": "ew=="}),
        ("application/json", b'{"a": 1} x', {"data_base64": "eyJhIjogMX0geA=="}),
        ("application/json", b'"\xff"', {"data_base64": "Iv8i"}),
        ("text/plain", b"\xff", {"data_base64": "/w=="}),
        ("application/json", b"", {"data_base64": ""}),
    ],
)
def test_structured_event_bodies(
    content_type: str, body: bytes, expected: dict[str, object]
) -> None:
    made = json.loads(structured_body({"id": "1"}, content_type, body))
    assert made == {"id": "1", "datacontenttype": content_type, **expected}


def test_big_numbers_and_deep_documents_are_kept() -> None:
    number = b"1" * 100
    made = structured_body({"id": "1"}, "application/json", number)
    assert b'"data":' + number in made
    deep = b"[" * 100_000 + b"]" * 100_000
    assert base64.b64encode(deep) in structured_body({"id": "1"}, "application/json", deep)


def test_names_that_are_not_utf_8() -> None:
    made = json.loads(structured_body({"subject": "a\udcff"}, "text/plain", b""))
    assert made["subject"] == "a?"


def event(**changed: object) -> Message:
    given = {"specversion": "1.0", "id": "a1", "source": "/shop", "type": "sold", **changed}
    table = {f"cloudEvents:{name}": value for name, value in given.items() if value is not None}
    return message(headers={"other": "1", **table})


@pytest.mark.parametrize("prefix", ["cloudEvents:", "cloudEvents_"])
def test_an_event_keeps_its_attributes(prefix: str) -> None:
    table = (event(subject="x").properties.headers or {}).items()
    headers = {name.replace("cloudEvents:", prefix): value for name, value in table}
    assert own_attributes(message(headers=headers)) == {
        "specversion": "1.0", "id": "a1", "source": "/shop", "type": "sold", "subject": "x",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (False, "false"),
        (-7, "-7"),
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "2026-01-02T03:04:05Z"),
    ],
)
def test_values_of_other_types_are_written(value: object, text: str) -> None:
    found = own_attributes(event(extension=value))
    assert found is not None and found["extension"] == text


@pytest.mark.parametrize("name", ["Upper", "a-b", "datacontenttype", "data", "data_base64"])
def test_invalid_attributes_are_left_out(name: str) -> None:
    assert own_attributes(event(**{name: "x"})) == own_attributes(event())


@pytest.mark.parametrize("extra", [b"bytes", ["a"], {"a": 1}, None, ""])
def test_values_without_text_are_left_out(extra: object) -> None:
    assert own_attributes(event(extra=extra)) == own_attributes(event())


@pytest.mark.parametrize(("size", "is_kept"), [(4_058, True), (4_059, False)])
def test_attributes_have_4096_characters(size: int, is_kept: bool) -> None:
    found = own_attributes(event(x="a" * size))  # with 38 others
    assert found is not None and ("x" in found) is is_kept


def test_extensions_are_limited() -> None:
    found = own_attributes(event(long="\u20ac" * 500, **{f"e{at}": "x" * 98 for at in range(60)}))
    assert found is not None and "long" not in found
    assert 39 <= len(found) - 4 <= 41


@pytest.mark.parametrize(
    "changed",
    [{"specversion": "0.3"}, {"id": None}, {"source": ""}, {"type": b"x"}, {"id": "\u20ac" * 500}],
)
def test_incomplete_events_are_plain_messages(changed: dict[str, object]) -> None:
    assert own_attributes(event(**changed)) is None
