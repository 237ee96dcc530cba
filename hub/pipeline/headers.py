"""Header tables as maps of text, for all messages at once.

The k-th entries of all tables are read in one round. Values that are not text become text: numbers
in decimals, booleans `true` and `false`, times in ISO 8601, octets in base64, tables and arrays in
JSON; a void value is null.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...core.wire.tables import decode_value
from .octets import Octets, Positions

_TEXT: Final = ord("S")
_VOID: Final = ord("V")
_BOOLEAN: Final = ord("t")
_INTEGERS: Final = {
    ord("b"): "i1", ord("B"): "u1", ord("s"): ">i2", ord("u"): ">u2",
    ord("I"): ">i4", ord("i"): ">u4", ord("l"): ">i8", ord("L"): ">u8",
}  # fmt: skip
_REALS: Final = {ord("f"): ">f4", ord("d"): ">f8"}
_SIZED: Final = -1
"""The size of a type whose values begin with their length."""
_SIZES: Final = np.zeros(256, np.int64)
for _kinds, _size in (("tbBV", 1), ("su", 2), ("Iif", 4), ("lLdT", 8), ("D", 5), ("SxFA", _SIZED)):
    for _kind in _kinds:
        _SIZES[ord(_kind)] = _size
_SIZES[_VOID] = 0


class Entries(NamedTuple):
    """Entries of tables: which table each belongs to, its key, and the type and place of its
    value."""

    tables: Positions
    keys: Positions
    key_ends: Positions
    kinds: Positions
    values: Positions
    value_ends: Positions


def maps(octets: Octets, starts: Positions, ends: Positions) -> pa.Array:
    """Returns the tables whose entries lie between starts and ends."""
    rounds = list(_rounds(octets, starts, ends))
    counts = np.zeros(len(starts), np.int64)
    for entries in rounds:
        counts[entries.tables] += 1
    bounds = np.concatenate(([0], np.cumsum(counts)))
    ordered = _in_order(rounds, bounds)
    keys = octets.text(ordered.keys, ordered.key_ends)
    return pa.MapArray.from_arrays(pa.array(bounds, pa.int32()), keys, _values(octets, ordered))


def _rounds(octets: Octets, starts: Positions, ends: Positions) -> Iterator[Entries]:
    """Yields the first entries of all tables, then the second ones, and so on."""
    tables = np.flatnonzero(starts < ends)
    at, ends = starts[tables], ends[tables]
    while len(tables):
        key_ends = at + 1 + octets.octet(at)
        kinds = octets.octet(key_ends)
        values = key_ends + 1
        sizes = _SIZES[kinds]
        sized = np.flatnonzero(sizes == _SIZED)
        sizes[sized] = 4 + octets.integer(">u4", values[sized])
        value_ends = values + sizes
        yield Entries(tables, at + 1, key_ends, kinds, values, value_ends)
        more = value_ends < ends
        tables, at, ends = tables[more], value_ends[more], ends[more]


def _in_order(rounds: list[Entries], bounds: Positions) -> Entries:
    """Returns all entries, those of a table together and in its order."""
    ordered = Entries(*np.empty((len(Entries._fields), int(bounds[-1])), np.int64))
    for number, entries in enumerate(rounds):
        places = bounds[entries.tables] + number
        for column, values in zip(ordered, entries, strict=True):
            column[places] = values
    return ordered


def _values(octets: Octets, entries: Entries) -> pa.Array:
    """Returns the values as text."""
    is_text = entries.kinds == _TEXT
    starts = entries.values + 4 * is_text
    texts = octets.text(starts, np.where(is_text, entries.value_ends, starts))
    if is_text.all():
        return texts
    places = np.arange(len(texts))
    parts, count = [texts], len(texts)
    for kind in np.flatnonzero(np.bincount(entries.kinds)):
        if kind == _TEXT:
            continue
        rows = np.flatnonzero(entries.kinds == kind)
        parts.append(_as_text(octets, int(kind), entries.values[rows], entries.value_ends[rows]))
        places[rows] = np.arange(count, count + len(rows))
        count += len(rows)
    return pa.concat_arrays(parts).take(pa.array(places))


def _as_text(octets: Octets, kind: int, starts: Positions, ends: Positions) -> pa.Array:
    """Returns values of one type, other than text, as text."""
    if kind in _INTEGERS:
        return pa.array(octets.number(_INTEGERS[kind], starts)).cast(pa.string())
    if kind == _BOOLEAN:
        return pa.array(octets.octet(starts) != 0).cast(pa.string())
    if kind == _VOID:
        return pa.nulls(len(starts), pa.string())
    if kind in _REALS:
        found: NDArray[Any] = octets.number(_REALS[kind], starts)
        return pa.array(list(map(repr, found.tolist())), pa.string())
    data = octets.data
    bounds = zip(starts.tolist(), ends.tolist(), strict=True)
    return pa.array([text(decode_value(data[at - 1 : end])) for at, end in bounds], pa.string())


def text(value: object) -> str:
    """Returns a decoded value of a table as text."""
    match value:
        case str():
            return value
        case bytes():
            return value.decode(errors="replace")
        case bytearray():
            return base64.b64encode(value).decode()
        case Decimal():
            return format(value, "f")
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case dict() | list():
            return json.dumps(value, default=text, ensure_ascii=False, separators=(",", ":"))
        case bool():
            return str(value).lower()
        case _:
            return str(value)
