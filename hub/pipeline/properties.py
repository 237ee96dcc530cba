"""Property lists as columns: all lists are read in lockstep, property by property.

A list is a flag word and the values whose bits are set, highest bit first (AMQP 0-9-1 4.2.6.1).
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from .headers import maps
from .octets import Octets, Positions, spread
from .schema import ARROW_TYPES

_LAST_SECOND: Final = 253_402_300_799
"""The end of the year 9999, behind which Python has no date."""


class _Kind(NamedTuple):
    """Reads values of a type: where they end, and their column."""

    ends: Callable[[Octets, Positions], Positions]
    column: Callable[[Octets, Positions, Positions], pa.Array]


def _text(octets: Octets, starts: Positions, ends: Positions) -> pa.Array:
    return octets.text(starts + 1, ends)


def _table(octets: Octets, starts: Positions, ends: Positions) -> pa.Array:
    return maps(octets, starts + 4, ends)


def _octet(octets: Octets, starts: Positions, ends: Positions) -> pa.Array:
    return pa.array(octets.octet(starts), pa.int32())


def _time(octets: Octets, starts: Positions, ends: Positions) -> pa.Array:
    seconds = octets.number(">u8", starts)
    late = seconds > _LAST_SECOND
    microseconds = np.where(late, 0, seconds).astype(np.int64) * 1_000_000
    return pa.array(microseconds.view("M8[us]"), ARROW_TYPES["timestamp"], mask=late)


_TEXT: Final = _Kind(lambda octets, at: at + 1 + octets.octet(at), _text)
_TABLE: Final = _Kind(lambda octets, at: at + 4 + octets.integer(">u4", at), _table)
_OCTET: Final = _Kind(lambda octets, at: at + 1, _octet)
_TIME: Final = _Kind(lambda octets, at: at + 8, _time)

PROPERTIES: Final = (
    ("content_type", 0x8000, _TEXT),
    ("content_encoding", 0x4000, _TEXT),
    ("headers", 0x2000, _TABLE),
    ("delivery_mode", 0x1000, _OCTET),
    ("priority", 0x0800, _OCTET),
    ("correlation_id", 0x0400, _TEXT),
    ("reply_to", 0x0200, _TEXT),
    ("expiration", 0x0100, _TEXT),
    ("message_id", 0x0080, _TEXT),
    ("message_timestamp", 0x0040, _TIME),
    ("type", 0x0020, _TEXT),
    ("user_id", 0x0010, _TEXT),
    ("app_id", 0x0008, _TEXT),
)


def read_properties(
    octets: Octets, lists: Positions, wanted: Container[str]
) -> dict[str, pa.Array]:
    """Returns the wanted columns of which any list has a value."""
    flags = octets.integer(">u2", lists)
    at = lists + 2
    columns = {}
    for name, bit, kind in PROPERTIES:
        present = flags & bit != 0
        rows = np.flatnonzero(present)
        if not len(rows):
            continue
        starts = at[rows]
        ends = at[rows] = kind.ends(octets, starts)
        if name in wanted:
            columns[name] = spread(kind.column(octets, starts, ends), present)
    return columns
