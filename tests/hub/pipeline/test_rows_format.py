"""Rows as Spark's tasks encode them are rows as the server reads them."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import chain
from typing import Any

import pyarrow as pa
import pytest

from warrenmq.core.message.model import Row
from warrenmq.core.wire.properties import decode
from warrenmq.hub.pipeline.errors import RowError
from warrenmq.hub.pipeline.rows_format import PIECE_BYTES, encode, pieces
from warrenmq.hub.pipeline.schema import ARROW_SCHEMA
from warrenmq.hub.transactions.rows import read_rows

NOON = datetime(2026, 1, 31, 12, 0, 0, 500_000, tzinfo=UTC)
TEXTS = (
    "routing_key", "message_id", "content_type", "content_encoding", "correlation_id", "reply_to",
    "expiration", "type", "user_id", "app_id",
)  # fmt: skip


def batch(count: int) -> pa.RecordBatch:
    """Rows of which every column is null in some, and all are in one."""
    rows = [
        {
            **{name: some(at, place, f"{name}-{at}") for place, name in enumerate(TEXTS)},
            "headers": some(at, 1, [(f"k{n}", "v" * at if n else None) for n in range(at % 4)]),
            "delivery_mode": some(at, 2, 1 + at % 2),
            "priority": some(at, 3, at % 256),
            "message_timestamp": some(at, 4, NOON),
            "body": b"%d" % at,
        }
        for at in range(count)
    ]
    names = list(rows[0])
    return pa.RecordBatch.from_pylist(rows, pa.schema([ARROW_SCHEMA.field(name) for name in names]))


def some(at: int, place: int, value: object) -> object:
    return value if at % (place + 2) else None


def staged(*batches: pa.RecordBatch) -> list[Row]:
    encoded = [encode(one, "default") for one in batches]
    return list(chain.from_iterable(chain.from_iterable(map(read_rows, pieces(encoded)))))


def read(row: Row) -> dict[str, Any]:
    key, listed, body = row
    found = decode(listed)
    names = (*TEXTS[1:], "delivery_mode", "priority")
    return {
        **{name: getattr(found, name) for name in names},
        "routing_key": key.decode(),
        "headers": None if found.headers is None else list(found.headers.items()),
        "message_timestamp": found.timestamp,
        "body": body,
    }


def test_rows_are_read_as_they_were() -> None:
    rows = batch(200)
    expected = [
        {
            **row,
            "routing_key": row["routing_key"] or "default",
            "delivery_mode": row["delivery_mode"] or 2,
            "message_timestamp": row["message_timestamp"] and int(NOON.timestamp()),
        }
        for row in rows.to_pylist()
    ]
    assert [read(row) for row in staged(rows.slice(0, 90), rows.slice(90))] == expected


def test_pieces_are_of_bounded_size() -> None:
    sizes = [10, 3_000_000, 2_000_000, PIECE_BYTES + 1, 10, 20]
    rows = pa.record_batch({"body": pa.array([b"x" * size for size in sizes], pa.binary())})
    made = list(pieces([encode(rows, "")]))
    assert [int.from_bytes(piece[4:8], "little") for piece in made] == [2, 1, 1, 2]
    assert [len(body) for _, _, body in staged(rows)] == sizes
    assert list(pieces([])) == []


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("body", None, "column 'body' is null in a row"),
        ("type", "ü" * 128, "column 'type' has a text of 256 bytes; at most 255"),
        ("headers", [("k" * 256, "")], r"column 'headers \(a key\)' has a text of 256 bytes"),
        ("delivery_mode", 3, "column 'delivery_mode' is 3 in a row; 1 to 2 can be published"),
        ("priority", -1, "column 'priority' is -1 in a row; 0 to 255 can be published"),
        ("message_timestamp", datetime(1969, 1, 1, tzinfo=UTC), "a time since 1970"),
    ],
)
def test_values_that_no_message_can_have(name: str, value: object, reason: str) -> None:
    row = {"body": b"x"} | {name: value}
    schema = pa.schema([ARROW_SCHEMA.field(column) for column in row])
    with pytest.raises(RowError, match=reason):
        encode(pa.RecordBatch.from_pylist([row], schema), "")
