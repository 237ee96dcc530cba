"""CloudEvents in binary mode as they are published (CloudEvents HTTP binding 3.1)."""

from __future__ import annotations

import pytest

from warrenmq.app.problems import Problem
from warrenmq.app.requests.properties import read

EVENT = {
    b"ce-specversion": b"1.0",
    b"ce-id": b"a1",
    b"ce-source": b"/shop",
    b"ce-type": b"com.example.sold",
}


def headers_of(fields: dict[bytes, bytes]) -> object:
    return read(b"", fields.items()).properties.headers


def test_attributes_become_headers_of_the_message() -> None:
    found = headers_of({**EVENT, b"ce-subject": b"Euro%20%E2%82%AC", b"ce-traceparent": b"00-1"})
    assert found == {
        "cloudEvents:specversion": "1.0",
        "cloudEvents:id": "a1",
        "cloudEvents:source": "/shop",
        "cloudEvents:type": "com.example.sold",
        "cloudEvents:subject": "Euro \u20ac",
        "cloudEvents:traceparent": "00-1",
    }


@pytest.mark.parametrize(
    ("sent", "value"),
    [
        (b'"a b"', "a b"),
        (rb'"say \"hi\" \\ \a"', 'say "hi" \\ a'),
        (b'"Euro%20%E2%82%AC"', "Euro \u20ac"),
        (b'"%22"', '"'),
        (b"%22a%22", '"a"'),
        (b"%2522", "%22"),
        (b'"a', '"a'),
        (b'"', '"'),
        (b'say "hi"', 'say "hi"'),
        (b'"a" "b"', '"a" "b"'),
        (b'"a\\"', '"a\\"'),
    ],
)
def test_quoted_strings_are_unescaped_first(sent: bytes, value: str) -> None:
    """In required attributes and extensions alike."""
    quoted = {name: b'"%b"' % field for name, field in EVENT.items()}
    found = headers_of({**quoted, b"ce-subject": sent, b"ce-myextension": sent, b"ce-id": sent})
    assert found == {
        "cloudEvents:specversion": "1.0",
        "cloudEvents:source": "/shop",
        "cloudEvents:type": "com.example.sold",
        **{f"cloudEvents:{name}": value for name in ("id", "subject", "myextension")},
    }


def test_headers_with_a_similar_prefix_are_ignored() -> None:
    assert headers_of({b"ce-anything": b"1", b"ce-id": b"2"}) is None


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({b"ce-specversion": b"0.3"}, "ce-specversion is '0.3'; only 1.0 is supported"),
        ({b"ce-id": b""}, "ce-id is missing"),
        ({b"ce-id": b'""'}, "ce-id is missing"),
        ({b"ce-source": None}, "ce-source is missing"),
        ({b"ce-type": None}, "ce-type is missing"),
        ({b"ce-some_name": b"1"}, "'ce-some_name' is not an attribute name"),
        ({b"ce-" + b"a" * 41: b"1"}, "is not an attribute name"),
        ({b"ce-subject": b"%ff"}, "ce-subject is not UTF-8"),
        ({b"ce-id": b"x" * 4_050}, "the ce- headers have 4097 characters, at most 4096"),
        ({b"ce-id": b"%e2%82%ac" * 500}, "characters, at most 4096"),
    ],
)
def test_invalid_events_are_refused(changed: dict[bytes, bytes | None], said: str) -> None:
    fields = {name: value for name, value in {**EVENT, **changed}.items() if value is not None}
    with pytest.raises(Problem) as raised:
        headers_of(fields)
    assert raised.value.status == 400
    assert said in str(raised.value)


def test_one_attribute_twice_is_refused() -> None:
    with pytest.raises(Problem, match="two ce-id fields"):
        read(b"", [*EVENT.items(), (b"ce-id", b"b2")])


def test_a_batch_has_them_in_its_events() -> None:
    with pytest.raises(Problem, match="ce-specversion: events of a batch"):
        read(b"hub.mode=batch", EVENT.items())
