from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warrenmq.core.message.model import Properties
from warrenmq.core.wire import properties as wire
from warrenmq.core.wire import shapes
from warrenmq.core.wire.properties import PLAIN, MessageAttributes, read_attributes
from warrenmq.core.wire.shapes import Shapes

from .support import LISTS, outcome

CHANGES = (0x01, 0x02, 0x20, 0x7F, 0x80, 0xFF)


def agree(shapes: Shapes, raw: bytes) -> None:
    known = outcome(lambda: shapes.attributes(raw, 0, len(raw)))
    assert known == outcome(lambda: read_attributes(raw, 0, len(raw))), raw


@given(LISTS)
def test_a_list_changed_in_any_octet_is_read_as_if_it_were_new(made: Properties) -> None:
    raw = wire.encode(made)
    for change in CHANGES:
        known = Shapes()
        known.attributes(raw, 0, len(raw))
        for at in range(len(raw)):
            changed = bytearray(raw)
            changed[at] ^= change
            agree(known, bytes(changed))
        agree(known, raw)


@given(LISTS, st.data())
def test_a_list_changed_in_many_octets(made: Properties, data: st.DataObject) -> None:
    raw = wire.encode(made)
    known = Shapes()
    known.attributes(raw, 0, len(raw))
    for _ in range(10):
        changed = bytearray(raw)
        for at in data.draw(st.lists(st.integers(0, len(raw) - 1), max_size=8)):
            changed[at] = data.draw(st.integers(0, 255))
        agree(known, bytes(changed))


@given(st.lists(LISTS, max_size=20), st.binary(max_size=3), st.binary(max_size=3))
def test_one_memory_for_all_lists(made: list[Properties], before: bytes, behind: bytes) -> None:
    known = Shapes()
    for raw in map(wire.encode, made * 2):
        data = before + raw + behind
        attributes = known.attributes(data, len(before), len(before) + len(raw))
        assert attributes == read_attributes(raw, 0, len(raw))


REPLY_TO = "amq.rabbitmq.reply-to"


@pytest.mark.parametrize("first", ["x" * len(REPLY_TO), REPLY_TO])
def test_direct_reply_to_is_told_from_names_of_its_length(first: str) -> None:
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
    made = Properties(**{name: getattr(CELERY, name) for name in wire_names()})
    made.headers = headers
    made.correlation_id = identity
    return wire.encode(made)


def wire_names() -> list[str]:
    return list(Properties.__slots__)


def test_lists_of_a_known_structure_are_not_walked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    walked: list[bytes] = []

    def counting(data: bytes, at: int, end: int) -> MessageAttributes:
        walked.append(data[at:end])
        return read_attributes(data, at, end)

    monkeypatch.setattr(shapes, "read_attributes", counting)
    known = Shapes()
    for number in range(50):
        raw = celery(f"{number:036}", number)
        assert known.attributes(raw, 0, len(raw)).persistent
    assert len(walked) == 1
    other = celery("c" * 35, 0)
    known.attributes(other, 0, len(other))
    assert len(walked) == 2


def test_memory_is_bounded_and_forgetting_is_harmless() -> None:
    known = Shapes()
    for length in range(256):
        for other in range(0, 256, 40):
            raw = wire.encode(Properties(message_id="m" * length, app_id="a" * other))
            assert known.attributes(raw, 0, len(raw)) is PLAIN
    kept = known._by_size
    assert len(kept) <= shapes._SIZES_MAX
    assert all(len(structures) <= shapes._SHAPES_PER_SIZE for structures in kept.values())


def test_more_sizes_than_are_kept() -> None:
    known = Shapes()
    text = "x" * 255
    for size in range(2 * shapes._SIZES_MAX):
        full, rest = divmod(size, 255)
        headers = {str(number): text for number in range(full)} | {"rest": "x" * rest}
        raw = wire.encode(Properties(headers=dict(headers)))
        assert known.attributes(raw, 0, len(raw)) is PLAIN
        assert len(known._by_size) <= shapes._SIZES_MAX
