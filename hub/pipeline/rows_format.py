"""Encodes rows for staging (hub/transactions/rows.py): columns at once, no Python object per row.

Each part of a row is a column of its own, such as the length of a text and the text; Arrow joins
the parts of all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .errors import RowError
from .properties import PROPERTIES
from .schema import COLUMNS

PIECE_BYTES: Final = 4 * 1024 * 1024
_MAGIC: Final = b"WSR1"
_SHORT_MAX: Final = 255
_HEAD: Final = np.dtype([("key", "<u2"), ("properties", "<u4"), ("body", "<u4")])
_PERSISTENT: Final = 2
_NOTHING: Final = pa.scalar(b"", pa.large_binary())
Parts = list[pa.Array]
"""What is joined, row by row. A null adds nothing."""
Sizes = NDArray[np.int64]


def pieces(rows: Iterable[pa.Array]) -> Iterator[bytes]:
    """Yields encoded rows in pieces of up to 4 MiB, or of one row that is larger."""
    parts: list[pa.Buffer] = []
    count = size = 0
    for part, part_count in _portions(rows):
        if parts and size + part.size > PIECE_BYTES:
            yield _piece(parts, count)
            parts, count, size = [], 0, 0
        parts.append(part)
        count += part_count
        size += part.size
    if parts:
        yield _piece(parts, count)


def _piece(parts: list[pa.Buffer], count: int) -> bytes:
    return b"".join((_MAGIC, count.to_bytes(4, "little"), *parts))


def _portions(rows: Iterable[pa.Array]) -> Iterator[tuple[pa.Buffer, int]]:
    for array in rows:
        bounds, data = bounds_of(array), array.buffers()[2]
        first = 0
        while first < len(array):
            full = int(np.searchsorted(bounds, bounds[first] + PIECE_BYTES, "right")) - 1
            last = max(full, first + 1)
            yield data[int(bounds[first]) : int(bounds[last])], last - first
            first = last


def encode(batch: pa.RecordBatch, routing_key: str) -> pa.Array:
    """Returns the rows; those without a routing key have the given one.

    Raises `RowError` for a value that is too long, negative or missing.
    """
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    body = columns["body"].cast(pa.large_binary())
    if body.null_count:
        raise RowError("column 'body' is null in a row; give it a value, as with coalesce")
    keys = columns.get("routing_key", pa.nulls(len(body), pa.string()))
    key = short_strings("routing_key", pc.fill_null(keys, routing_key))
    modes = columns.get("delivery_mode", pa.nulls(len(body), pa.int32()))
    modes = pc.fill_null(modes, _PERSISTENT)
    _within("delivery_mode", modes, 1, _PERSISTENT)
    parts, sizes = property_lists({**columns, "delivery_mode": modes}, len(body))
    head = np.empty(len(body), _HEAD)
    head["key"], head["properties"], head["body"] = lengths_of(key), sizes, lengths_of(body)
    return joined([octets_of(head), key, *parts, body])


def property_lists(columns: dict[str, pa.Array], count: int) -> tuple[Parts, Sizes]:
    """Returns the parts of property lists, and the size of each list."""
    flags = np.zeros(count, ">u2")
    parts: Parts = []
    for name, bit, _ in PROPERTIES:
        column = columns.get(name)
        if column is not None and column.null_count < count:
            flags |= np.where(_valid(column), bit, 0).astype(">u2")
            parts += _KINDS[COLUMNS[name]](name, column)
    parts.insert(0, octets_of(flags))
    return parts, np.sum([lengths_of(part) for part in parts], axis=0)


def _text(name: str, column: pa.Array) -> Parts:
    text = short_strings(name, column)
    return [octets_of(lengths_of(text).astype("u1"), _valid(text)), text]


def _octet(name: str, column: pa.Array) -> Parts:
    values = _within(name, column, 0, 255)
    return [octets_of(values.astype("u1"), _valid(column))]


def _time(name: str, column: pa.Array) -> Parts:
    microseconds = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    values = _within(name, microseconds, 0, np.iinfo(np.int64).max) // 1_000_000
    return [octets_of(values.astype(">u8"), _valid(column))]


def _table(name: str, column: pa.MapArray) -> Parts:
    """The keys and values of all tables are encoded at once; those of a table lie together."""
    keys, values = (
        short_strings(f"{name} (a key)", column.keys),
        column.items.cast(pa.large_binary()),
    )
    is_text = _valid(values)
    kinds = np.where(is_text, ord("S"), ord("V")).astype("u1")
    entries = joined(
        [
            octets_of(lengths_of(keys).astype("u1")), keys, octets_of(kinds),
            octets_of(lengths_of(values).astype(">u4"), is_text), values,
        ]
    )  # fmt: skip
    bounds = bounds_of(entries)[column.offsets.to_numpy()]
    tables = _binary(bounds, entries.buffers()[2])
    if column.null_count:
        tables = pc.if_else(column.is_valid(), tables, None)
    return [octets_of(lengths_of(tables).astype(">u4"), _valid(tables)), tables]


_KINDS: Final[dict[str, Callable[[str, pa.Array], Parts]]] = {
    "string": _text,
    "int": _octet,
    "timestamp": _time,
    "map<string,string>": _table,
}


def short_strings(name: str, column: pa.Array) -> pa.Array:
    """Returns texts as bytes. Raises `RowError` for one that is no short string of AMQP."""
    found = column.cast(pa.large_binary())
    longest = int(lengths_of(found).max(initial=0))
    if longest > _SHORT_MAX:
        raise RowError(
            f"column '{name}' has a text of {longest} bytes; at most {_SHORT_MAX} can be published"
        )
    return found


def _within(name: str, column: pa.Array, low: int, high: int) -> Sizes:
    """Returns numbers, the lowest one for nulls. Raises `RowError` for those out of bounds."""
    values = pc.fill_null(column.cast(pa.int64()), low).to_numpy()
    wrong = values[(values < low) | (values > high)]
    if len(wrong):
        wanted = "a time since 1970" if name == "message_timestamp" else f"{low} to {high}"
        raise RowError(f"column '{name}' is {wrong[0]} in a row; {wanted} can be published")
    return values  # type: ignore[no-any-return]


def _valid(column: pa.Array) -> NDArray[np.bool_]:
    return column.is_valid().to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def lengths_of(column: pa.Array) -> Sizes:
    return pc.fill_null(pc.binary_length(column), 0).to_numpy()  # type: ignore[no-any-return]


def octets_of(values: NDArray[Any], present: NDArray[np.bool_] | None = None) -> pa.Array:
    """Returns numbers as the bytes that they are; those that are not present as none."""
    if present is None:
        bounds = np.arange(len(values) + 1) * values.itemsize
        return _binary(bounds, pa.py_buffer(values))
    bounds = np.concatenate(([0], np.cumsum(present) * values.itemsize))
    return _binary(bounds, pa.py_buffer(np.ascontiguousarray(values[present])))


def joined(parts: Parts) -> pa.Array:
    return pc.binary_join_element_wise(*parts, _NOTHING, null_handling="skip")


def bounds_of(array: pa.Array) -> NDArray[np.int64]:
    """Returns where each value begins in the array's bytes, and where the last one ends."""
    found = np.frombuffer(array.buffers()[1], np.int64)
    return found[array.offset : array.offset + len(array) + 1]


def _binary(bounds: NDArray[np.int64], data: pa.Buffer) -> pa.Array:
    offsets = pa.py_buffer(bounds.astype(np.int64))
    return pa.Array.from_buffers(pa.large_binary(), len(bounds) - 1, [None, offsets, data])
