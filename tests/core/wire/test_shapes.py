from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warrenmq.core.message.model import Properties
from warrenmq.core.wire import properties as wire
from warrenmq.core.wire import shapes
from warrenmq.core.wire.properties import PLAIN, MessageAttributes, read_attributes
from warrenmq.core.wire.shapes import Shapes

from .support import LISTS, fields, outcome

CHANGES = (0x01, 0x02, 0x20, 0x7F, 0x80, 0xFF)


def agree(shapes: Shapes, raw: bytes) -> None:
    known = outcome(lambda: shapes.attributes(raw, 0, len(raw)))
    assert known == outcome(lambda: read_attributes(raw, 0, len(raw))), raw


@given(LISTS)
def test_lists_changed_in_one_octet(made: Properties) -> None:
    raw = wire.encode(made)
    for change in CHANGES:
        known = Shapes()
        known.attributes(raw, 0, len(raw))
        for at in range(len(raw)):
            changed = bytearray(raw)
            changed[at] ^= change
            agree(known, bytes(changed))
        agree(known, raw)


@given(st.lists(LISTS, max_size=20), st.binary(max_size=3), st.binary(max_size=3))
def test_one_cache_for_all_lists(made: list[Properties], before: bytes, behind: bytes) -> None:
    known = Shapes()
    for raw in map(wire.encode, made * 2):
        data = before + raw + behind
        attributes = known.attributes(data, len(before), len(before) + len(raw))
        assert fields(attributes) == fields(read_attributes(raw, 0, len(raw)))


REPLY_TO = "amq.rabbitmq.reply-to"


@pytest.mark.parametrize("first", ["x" * len(REPLY_TO), REPLY_TO])
def test_direct_reply_to_and_names_of_its_length(first: str) -> None:
    known = Shapes()
    for name in (first, "y" * len(REPLY_TO), REPLY_TO, first):
        raw = wire.encode(Properties(reply_to=name, correlation_id="z" * len(REPLY_TO)))
        assert known.attributes(raw, 0, len(raw)).inspected == (name == REPLY_TO)


CELERY = Properties(
    content_type="application/json",
    content_encoding="utf-8",
    headers={"lang": "py", "id": "a" * 36, "retries": 0, "eta": None, "args": ["x", {"n": 1}]},
    delivery_mode=2,
    priority=0,
    correlation_id="a" * 36,
    reply_to="b" * 36,
    timestamp=1_700_000_000,
)


def celery(identity: str, retries: int) -> bytes:
    headers = {**(CELERY.headers or {}), "id": identity, "retries": retries}
    return wire.encode(replace(CELERY, headers=headers, correlation_id=identity))


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The lists that were checked entry by entry."""
    found: list[bytes] = []

    def counting(data: bytes, at: int, end: int) -> MessageAttributes:
        found.append(data[at:end])
        return read_attributes(data, at, end)

    monkeypatch.setattr(shapes, "read_attributes", counting)
    return found


def test_known_structures_are_not_parsed(walked: list[bytes]) -> None:
    known = Shapes()
    for number in range(50):
        raw = celery(f"{number:036}", number)
        assert known.attributes(raw, 0, len(raw)).persistent
    assert len(walked) == 1
    other = celery("c" * 35, 0)
    known.attributes(other, 0, len(other))
    assert len(walked) == 2


def of_one_size() -> list[Properties]:
    return [Properties(message_id="m" * size, app_id="a" * (100 - size)) for size in range(100)]


def of_all_sizes() -> list[Properties]:
    return [Properties(headers={"k": "x" * size}) for size in range(3_000)]


@pytest.mark.parametrize(("made", "kept"), [(of_one_size(), 4), (of_all_sizes(), 1_024)])
def test_the_cache_is_bounded(walked: list[bytes], made: list[Properties], kept: int) -> None:
    """Of those that came, no more are known than these."""
    known, lists = Shapes(), [wire.encode(properties) for properties in made]
    for raw in lists * 2:
        assert known.attributes(raw, 0, len(raw)) is PLAIN
    assert len(walked) >= 2 * len(lists) - kept
