"""Records: round trips, and validity at their own location only."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warrenmq.core.errors import ConfigError
from warrenmq.core.store.record import (
    FILE_HEADER_BYTES,
    HEAD_BYTES,
    MAGIC,
    DamagedHeader,
    FileHeader,
    Flags,
    Gap,
    Record,
    RecordKind,
    counting,
    read_file_header,
    read_record,
    scan,
    seal,
)

bodies = st.lists(st.binary(max_size=40), max_size=3)
HEADER = FileHeader(b"log", b"i" * 16, 7).encode()


def file_of(*records: list[bytes], segment: int = 7, flags: tuple[int, ...] = ()) -> bytes:
    """A segment with a record of each list of pieces; the n-th has the sequence number n."""
    data = bytearray(HEADER)
    for number, pieces in enumerate(records):
        flag = flags[number] if flags else Flags.NONE
        data += b"".join(seal(segment, len(data), RecordKind.MESSAGES, flag, number, pieces))
    return bytes(data)


def read(data: bytes, segment: int = 7) -> list[Record | Gap]:
    return list(scan(segment, memoryview(data)))


@given(st.lists(bodies, max_size=6), st.integers(0, 200))
def test_record_round_trip(records: list[list[bytes]], zeros: int) -> None:
    found = read(file_of(*records) + bytes(zeros))
    assert [(r.sequence, bytes(r.body)) for r in found if isinstance(r, Record)] == [
        (number, b"".join(pieces)) for number, pieces in enumerate(records)
    ]
    assert [r for r in found if isinstance(r, Gap)] == []


@given(bodies, st.integers(0, 2**64 - 1), st.integers(0, 255), st.integers(0, 255))
def test_record_head_round_trip(body: list[bytes], sequence: int, kind: int, flags: int) -> None:
    data = b"".join(seal(3, 100, kind, flags, sequence, body))
    found = read_record(3, memoryview(data), 0, 100)
    assert found is not None
    assert (found.offset, found.kind, found.flags, found.sequence) == (100, kind, flags, sequence)
    assert found.end == 100 + len(data) == 100 + HEAD_BYTES + len(found.body)


@given(bodies, st.integers(0, 10), st.integers(0, 10))
def test_a_record_is_valid_only_at_its_place(body: list[bytes], segment: int, offset: int) -> None:
    data = memoryview(b"".join(seal(3, 5, RecordKind.MESSAGES, 0, 1, body)))
    assert (read_record(segment, data, 0, offset) is not None) == ((segment, offset) == (3, 5))


@given(st.lists(st.binary(min_size=1, max_size=20), min_size=2, max_size=5), st.data())
def test_one_flipped_bit_costs_one_record(bodies: list[bytes], data: st.DataObject) -> None:
    raw = bytearray(file_of(*([body] for body in bodies)))
    bit = data.draw(st.integers(8 * FILE_HEADER_BYTES, 8 * len(raw) - 1))
    raw[bit // 8] ^= 1 << bit % 8
    found = read(bytes(raw))
    sound = [bytes(r.body) for r in found if isinstance(r, Record)]
    assert len(sound) == len(bodies) - 1 and not set(sound) - set(bodies)
    gaps = [r for r in found if isinstance(r, Gap)]
    is_last = bit // 8 >= len(raw) - HEAD_BYTES - len(bodies[-1])
    assert len(gaps) == (0 if is_last else 1)
    assert all(gap.start <= bit // 8 < gap.end for gap in gaps)


@given(st.binary(max_size=200))
def test_random_bytes_are_not_records(raw: bytes) -> None:
    assert read(HEADER + raw) == []
    assert read(HEADER + MAGIC + raw) == []


def test_a_record_inside_a_message_is_not_found() -> None:
    inner = b"".join(seal(7, FILE_HEADER_BYTES, RecordKind.DROPPED, 0, 9, [b"12345678"]))
    raw = bytearray(file_of([inner], [b"next"]))
    raw[FILE_HEADER_BYTES + 1] ^= 1
    assert [bytes(r.body) for r in read(bytes(raw)) if isinstance(r, Record)] == [b"next"]


FIRST, MIDDLE, LAST = (
    Flags.GROUPED | Flags.FIRST, Flags.GROUPED, Flags.GROUPED | Flags.LAST,
)  # fmt: skip


@pytest.mark.parametrize(
    ("flags", "counted"),
    [
        ((0, FIRST, MIDDLE, LAST, 0), [0, 1, 2, 3, 4]),
        ((0, FIRST, MIDDLE), [0]),
        ((FIRST, MIDDLE, 0), [2]),
        ((MIDDLE, LAST, 0), [2]),
        ((FIRST, FIRST, LAST), [1, 2]),
        ((FIRST, LAST, LAST, 0), [0, 1, 3]),
    ],
)
def test_only_whole_groups_count(flags: tuple[int, ...], counted: list[int]) -> None:
    data = file_of(*([b"body"] for _ in flags), flags=flags)
    assert [record.sequence for record in counting(read(data))] == counted


def test_damaged_group_is_ignored() -> None:
    data = bytearray(file_of([b"a"], [b"b"], [b"c"], [b"d"], flags=(FIRST, MIDDLE, LAST, 0)))
    data[FILE_HEADER_BYTES + HEAD_BYTES + 1 + HEAD_BYTES] ^= 1
    assert [record.sequence for record in counting(read(bytes(data)))] == [3]


@given(st.binary(min_size=16, max_size=16), st.integers(0, 2**64 - 1))
def test_file_header_round_trip(store_id: bytes, number: int) -> None:
    header = FileHeader(b"state", store_id, number)
    assert len(header.encode()) == FILE_HEADER_BYTES
    assert read_file_header("name", header.encode() + b"behind") == header


@pytest.mark.parametrize("bit", range(8 * FILE_HEADER_BYTES))
def test_every_flipped_bit_of_a_header_is_detected(bit: int) -> None:
    raw = bytearray(HEADER)
    raw[bit // 8] ^= 1 << bit % 8
    with pytest.raises(DamagedHeader, match=r"7\.log"):
        read_file_header("7.log", bytes(raw))


def test_a_short_header_is_damaged() -> None:
    with pytest.raises(ConfigError, match="damaged"):
        read_file_header("7.log", HEADER[:-1])
