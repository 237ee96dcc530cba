"""Amounts of memory and disk in settings: a share of the whole, or a size."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

KIB, MIB, GIB = 1024, 1024**2, 1024**3
SHARE_MAX: Final = 100.0
"""A larger number without a unit is taken for a size without its unit."""
_UNITS: Final = {"B": 1}
for _power, _letter in enumerate("KMGTP", 1):
    _UNITS[f"{_letter}B"] = 1000**_power
    _UNITS[f"{_letter}IB"] = 1024**_power
_AMOUNT: Final = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?) ?([A-Za-z]{0,3})")


class Amount(NamedTuple):
    """A number of bytes, or a share of the whole; the other one is 0."""

    size_bytes: int
    share: float

    def of(self, whole_bytes: int) -> int:
        """Returns the number of bytes."""
        return self.size_bytes + int(self.share * whole_bytes)


def read_amount(text: str) -> Amount:
    """Parses an amount: `0.4` and `1.5` are shares of the whole, `512MiB` and `2 GB` sizes.

    Raises:
        ValueError: the text is no amount; the message says what is.
    """
    found = _AMOUNT.fullmatch(text)
    if found is None:
        raise ValueError(f"'{text}' is neither a share like 0.4 nor a size like 512MiB")
    number, unit = float(found[1]), found[2].upper()
    if unit:
        if unit not in _UNITS:
            raise ValueError(f"'{text}': unknown unit '{found[2]}'; use B, KiB, MiB, GiB, TiB, PiB")
        return Amount(int(number * _UNITS[unit]), 0.0)
    if number > SHARE_MAX:
        raise ValueError(
            f"'{text}' would be a multiple above {SHARE_MAX:.0f}; a size has a unit: {text}B"
        )
    return Amount(0, number)


def in_words(size_bytes: int) -> str:
    """Returns a size in readable form, such as `512.0 MiB`."""
    size = float(size_bytes)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if abs(size) < 1024:
            return f"{size_bytes} bytes" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
