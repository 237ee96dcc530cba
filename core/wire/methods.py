"""Decodes methods, field by field, with every length checked (the slow path).

The field lists come from pamqp's classes, so that a caller gets its typed objects
(`commands.Queue.Declare` and so on). Its own decoder is not used for the fixed part: it takes a
string that is cut short for a whole one.
"""

from __future__ import annotations

from typing import Any, Final, cast

from pamqp import base, commands

from ..errors import ConnectionFault
from .tables import decode_table, syntax_error

_INTEGER_BYTES: Final = {"octet": 1, "short": 2, "long": 4, "longlong": 8, "timestamp": 8}
_classes = cast(dict[int, type[base.Frame]], commands.INDEX_MAPPING)
_fields: dict[int, tuple[type[base.Frame], tuple[tuple[str, str], ...]]] = {
    index: (cls, tuple((name, cls.amqp_type(name)) for name in cls.attributes()))
    for index, cls in _classes.items()
}


def decode_method(payload: bytes) -> base.Frame:
    """Decodes a method frame's payload to pamqp's object.

    Raises:
        ConnectionFault: 540 for a class or method that AMQP 0-9-1 does not have, 502 for
            arguments that can't be decoded.
    """
    if len(payload) < 4:
        raise syntax_error(f"method frame has a payload of {len(payload)} bytes: 4 at least")
    index = int.from_bytes(payload[:4], "big")
    known = _fields.get(index)
    if known is None:
        raise ConnectionFault(540, f"unknown method {index >> 16}/{index & 0xFFFF}")
    cls, names = known
    method = cls.__new__(cls)
    reader = _Reader(payload, 4)
    for name, kind in names:
        setattr(method, name, reader.read(kind))
    if reader.at != len(payload):
        raise syntax_error(f"method of {reader.at} bytes in a frame of {len(payload)}")
    return method


class _Reader:
    """Reads typed fields one after the other; bits of neighbouring fields share an octet."""

    __slots__ = ("at", "bit", "data")

    def __init__(self, data: bytes, at: int) -> None:
        self.data = data
        self.at = at
        self.bit = 0

    def read(self, kind: str) -> Any:
        if kind == "bit":
            if self.bit == 0:
                self._take(1)
            value = bool(self.data[self.at - 1] >> self.bit & 1)
            self.bit = (self.bit + 1) & 7
            return value
        self.bit = 0
        if kind == "shortstr":
            return self._text(self._take(int.from_bytes(self._take(1), "big")))
        if kind == "longstr":
            return self._long_string(self._take(int.from_bytes(self._take(4), "big")))
        if kind == "table":
            table, self.at = decode_table(self.data, self.at, len(self.data))
            return table
        return int.from_bytes(self._take(_INTEGER_BYTES[kind]), "big")

    def _take(self, size: int) -> bytes:
        piece = self.data[self.at : self.at + size]
        if len(piece) != size:
            raise syntax_error(f"method argument of {size} bytes, {len(piece)} are there")
        self.at += size
        return piece

    @staticmethod
    def _text(raw: bytes) -> str:
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise syntax_error(f"short string {raw!r} is not UTF-8") from None

    @staticmethod
    def _long_string(raw: bytes) -> str | bytes:
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return raw
