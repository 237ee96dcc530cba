"""Encodes and decodes the fields of definitions' keys and values.

Text has its length in two octets before it. Arguments are field tables as AMQP writes them, so
that every type comes back as it came.
"""

from __future__ import annotations

from typing import Final

from ..errors import ConnectionFault
from ..message.model import FieldValue, Table
from ..wire.tables import decode_table, encode_table, encode_value, join_entries, join_items

MAX_TEXT_BYTES: Final = 65_535
VERSION: Final = b"\x01"
"""The first byte of a value; a kind that gets more fields gets a new version."""


def text(value: str) -> bytes:
    """Encodes text. Raises `ValueError` for more than 65,535 bytes, or invalid Unicode."""
    raw = value.encode()
    if len(raw) > MAX_TEXT_BYTES:
        raise ValueError(f"a text of {len(raw)} bytes: limit {MAX_TEXT_BYTES}")
    return len(raw).to_bytes(2, "big") + raw


def number(value: int) -> bytes:
    """Encodes a sequence number or count."""
    return value.to_bytes(8, "big")


def signed(value: int) -> bytes:
    """Encodes a whole number that may be negative. Raises `ValueError` beyond 64 bits."""
    try:
        return value.to_bytes(8, "big", signed=True)
    except OverflowError as error:
        raise ValueError(f"{value} does not fit into 64 bits") from error


def arguments(table: Table) -> bytes:
    """Encodes a field table; no bytes for an empty one. Raises `ValueError` for invalid values."""
    if not table:
        return b""
    try:
        return encode_table(table)
    except ValueError:
        return _exact_table(table)


def _exact_table(table: Table) -> bytes:
    """Encodes integers too that `encode_table` refuses though AMQP has them."""
    encode_table(dict.fromkeys(table))  # for the keys alone
    return join_entries({key.encode(): _exact(value) for key, value in table.items()})


def _exact(value: FieldValue) -> bytes:
    match value:
        case bool():
            return encode_value(value)
        case int() if 2**63 <= value < 2**64:
            return b"L" + value.to_bytes(8, "big")
        case list():
            return b"A" + join_items(map(_exact, value))
        case dict():
            return b"F" + _exact_table(value)
        case _:
            return encode_value(value)


class FieldReader:
    """Reads fields of a key or a value in order; raises `ValueError` if they are malformed."""

    __slots__ = ("_at", "_raw")

    def __init__(self, raw: bytes, at: int = 0) -> None:
        self._raw = raw
        self._at = at

    @property
    def version(self) -> bytes:
        """The first byte, in a value that begins with its version."""
        return self._raw[:1]

    def _take(self, size: int) -> bytes:

        at = self._at
        self._at = after = at + size
        if after > len(self._raw):
            raise ValueError("it is truncated")
        return self._raw[at:after]

    def octet(self) -> int:
        return self._take(1)[0]

    def flags(self, known: int) -> int:
        """Raises `ValueError` for flags that are not among these."""
        flags = self.octet()
        if flags & ~known:
            raise ValueError(f"unknown flags {flags & ~known}")
        return flags

    def number(self) -> int:
        return int.from_bytes(self._take(8), "big")

    def signed(self) -> int:
        return int.from_bytes(self._take(8), "big", signed=True)

    def text(self) -> str:
        raw, start = self._raw, self._at + 2
        self._at = end = start + int.from_bytes(raw[start - 2 : start], "big")
        if end > len(raw):
            raise ValueError("it is truncated")
        return raw[start:end].decode()

    def arguments(self) -> Table:
        """Reads the field table that takes the rest."""
        if self._at == len(self._raw):
            return {}
        try:
            table, self._at = decode_table(self._raw, self._at, len(self._raw))
        except ConnectionFault as error:
            raise ValueError(str(error)) from error
        return table

    def end(self) -> None:
        """Raises `ValueError` if anything is left."""
        if self._at != len(self._raw):
            raise ValueError(f"{len(self._raw) - self._at} bytes too many")
