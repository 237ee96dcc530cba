"""The numbers of a message record: its metadata, its shares and its layouts.

`encoder.py` writes them, `codec.py` reads them.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Sequence
from typing import Final

META: Final = struct.Struct("<IQIBBBI")
SHARE: Final = struct.Struct("<II")
STRIDED: Final = struct.Struct("<III")
WHOLE: Final = struct.Struct("<HII")
KEY: Final = struct.Struct("<I")
STRIDED_KIND, SCATTERED_KIND, WHOLE_KIND = 0, 1, 2
_SWAPPED: Final = sys.byteorder == "big"
REDELIVERED, EXPIRING, NUMBERED = 1, 2, 4
COUNT: Final = struct.Struct("<I")

Offsets = Sequence[tuple[int, int]]
"""Ids of streams, each with the offset of its first message in a record."""


def numbers(typecode: str, raw: bytes | memoryview) -> array[int]:
    """Returns little-endian numbers as an array."""
    found = array(typecode)
    found.frombytes(raw)
    if _SWAPPED:
        found.byteswap()
    return found


def octets(values: array[int]) -> bytes:
    """Returns an array as little-endian numbers."""
    if _SWAPPED:
        values = array(values.typecode, values)
        values.byteswap()
    return values.tobytes()
