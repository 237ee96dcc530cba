"""Chunks become rows: what was published, by columns as message by message."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.wire.support import LISTS
from warrenmq.core.message.batch import Batch
from warrenmq.core.message.model import Properties
from warrenmq.core.wire.properties import encode
from warrenmq.hub.pipeline.chunk_format import read_chunks
from warrenmq.hub.pipeline.columns import decode
from warrenmq.hub.pipeline.errors import DamagedChunk
from warrenmq.hub.pipeline.schema import ARROW_SCHEMA

from .chunks import STREAM, Published, Row, batch, chunk, chunks, plain, rows

exchanges = st.sampled_from(["", "x", "logs.all"])
published = st.builds(
    Published, st.binary(max_size=40), exchanges, st.text(max_size=10), raw=LISTS.map(encode)
)


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    kind = draw(st.sampled_from(["strided", "scattered", "whole"]))
    messages = draw(st.lists(published, min_size=1, max_size=5))
    if kind == "strided":
        first = messages[0]
        bodies = [bytes((number,)) * len(first.body) for number in range(len(messages))]
        messages = [
            Published(body, first.exchange, first.routing_key, raw=first.raw) for body in bodies
        ]
    return batch(messages, kind)


def decoded(data: bytes, start: int = 0, end: int = 2**40) -> list[Row]:
    """All rows; times are microseconds, which every one of them can be."""
    found = decode(data, read_chunks(data), STREAM, start, end, ARROW_SCHEMA)
    found.validate(full=True)
    for name in ("timestamp", "message_timestamp"):
        place = ARROW_SCHEMA.get_field_index(name)
        found = found.set_column(place, name, found.column(place).cast(pa.int64()))
    result: list[Row] = found.to_pylist()
    return result


@settings(deadline=None)
@given(st.lists(batches(), max_size=5), st.integers(0, 2**39))
def test_rows_are_those_that_were_published(made: list[Batch], first: int) -> None:
    expected, offset = [], first
    for one in made:
        expected += rows(one, offset)
        offset += one.count
    assert decoded(chunks(made, first)) == expected


@settings(deadline=None)
@given(st.integers(0, 12), st.integers(0, 12))
def test_rows_outside_the_range_are_left_out(start: int, end: int) -> None:
    data = chunks([batch(plain(5)), batch(plain(1), "whole"), batch(plain(4))])
    assert [row["offset"] for row in decoded(data, start, end)] == [*range(10)][start:end]


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"S\0\0\0\2ab", "ab"),
        (b"S\0\0\0\2\xff!", "\ufffd!"),
        (b"t\1", "true"),
        (b"t\0", "false"),
        (b"b\xff", "-1"),
        (b"B\xff", "255"),
        (b"s\xff\xfe", "-2"),
        (b"u\xff\xfe", "65534"),
        (b"I\xff\xff\xff\xfd", "-3"),
        (b"i\xff\xff\xff\xfd", "4294967293"),
        (b"l" + b"\xff" * 8, "-1"),
        (b"L" + b"\xff" * 8, "18446744073709551615"),
        (b"f\x3f\xc0\0\0", "1.5"),
        (b"d\x3f\xf0\0\0\0\0\0\0", "1.0"),
        (b"D\2\0\0\0\x7b", "1.23"),
        (b"T\0\0\0\0\x65\x53\xf1\0", "2023-11-14T22:13:20Z"),
        (b"x\0\0\0\2\xff\xfe", "//4="),
        (b"V", None),
        (b"A\0\0\0\4t\1t\0", "[true,false]"),
        (b"F\0\0\0\7\1kS\0\0\0\0", '{"k":""}'),
    ],
)
def test_header_values_are_text(raw: bytes, shown: str | None) -> None:
    table = b"\1k" + raw
    properties = b"\x20\0" + len(table).to_bytes(4, "big") + table
    (row,) = decoded(chunks([batch([Published(raw=properties)])]))
    assert row["headers"] == [("k", shown)]


def test_columns_that_are_not_wanted_are_not_there() -> None:
    data = chunks([batch(plain(3))])
    wanted = pa.schema([ARROW_SCHEMA.field(name) for name in ("message_id", "offset")])
    found = decode(data, read_chunks(data), STREAM, 1, 2, wanted)
    assert found.to_pylist() == [{"message_id": "m-1", "offset": 1}]


def test_a_time_after_the_year_9999_is_null() -> None:
    raw = encode(Properties(timestamp=2**63 + 1))
    (row,) = decoded(chunks([batch([Published(raw=raw)])]))
    assert row["message_timestamp"] is None


@pytest.mark.parametrize("made", [{"copied": True}, {"streams": 300}])
def test_records_that_were_copied_or_shared(made: dict[str, Any]) -> None:
    one = batch(plain(3), "whole")
    assert decoded(chunk(one, 4, **made)) == rows(one, 4)


WHOLE = chunk(batch(plain(3)), 0)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (WHOLE[:40], "head is cut off"),
        (b"WSC2" + WHOLE[4:], "begins with b'WSC2'"),
        (WHOLE[:-1], "is no record of messages"),
        (WHOLE[:50] + b"\7" + WHOLE[51:], "is no record of messages"),
        (WHOLE[:-3] + b"..." , "checksum is wrong"),
        (WHOLE[:16] + b"\4" + WHOLE[17:], "another number of messages"),
    ],
)  # fmt: skip
def test_damage_is_reported(data: bytes, reason: str) -> None:
    with pytest.raises(DamagedChunk, match=reason):
        decoded(data)
