"""Field tables: checked before they are decoded, and edited without being decoded.

Tables are untrusted, so `check` validates the bytes first, without recursion: nesting, number of
entries, every length, type and key. A table that it has passed can always be decoded.
`entries` splits a table into raw values, so that dead-lettering can add a header and leave all
the others byte for byte as they came.

pamqp's codec is not used: it refuses timestamps far off, takes those behind 2106 for
milliseconds, halves the precision of numbers and cuts long keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from struct import Struct
from typing import Final, cast

from ..errors import ConnectionFault
from ..message.model import SIZED, FieldValue, SizedInt, Table, Timestamp

MAX_DEPTH: Final = 128
"""Decoding takes three calls a level: 330 levels would end it."""
MAX_ENTRIES: Final = 8_192
"""So many take up to 4.6 ms to check, about a turn's share of one method."""

_FIXED_BYTES: Final = {
    ord("t"): 1, ord("b"): 1, ord("B"): 1, ord("s"): 2, ord("u"): 2, ord("I"): 4, ord("i"): 4,
    ord("l"): 8, ord("L"): 8, ord("f"): 4, ord("d"): 8, ord("D"): 5, ord("T"): 8, ord("V"): 0,
}  # fmt: skip
_NUMBERS: Final = {
    ord(kind): Struct(">" + layout) for kind, layout in zip("bBsuIilLfd", "bBhHiIqQfd", strict=True)
}
_STRINGS: Final = frozenset(b"Sx")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_SECOND: Final = int(datetime.min.replace(tzinfo=UTC).timestamp())
_LAST_SECOND: Final = int(datetime.max.replace(tzinfo=UTC, microsecond=0).timestamp())
_TABLE: Final = ord("F")
_ARRAY: Final = ord("A")


def syntax_error(explanation: str) -> ConnectionFault:
    return ConnectionFault(502, explanation)


def check(data: bytes, at: int, end: int) -> int:
    """Checks the table whose length word is at `at`; returns the offset behind it.

    Raises:
        ConnectionFault: 502 for a length past `end`, an unknown type, a duplicate or non-UTF-8
            key, more than `MAX_DEPTH` levels or more than `MAX_ENTRIES` entries.
    """
    after = _container_end(data, at, end)
    open_containers: list[tuple[int, set[bytes] | None]] = [(after, set())]
    at += 4
    entries = 0
    while open_containers:
        stop, keys = open_containers[-1]
        if at == stop:
            open_containers.pop()
            continue
        entries += 1
        if entries > MAX_ENTRIES:
            raise syntax_error(f"table has more than {MAX_ENTRIES} entries, all levels together")
        if keys is not None:
            at = _check_key(data, at, stop, keys)
        if at >= stop:
            raise syntax_error("table entry has no value")
        kind = data[at]
        at += 1
        size = _FIXED_BYTES.get(kind)
        if size is not None:
            at += size
        elif kind in _STRINGS:
            at = _container_end(data, at, stop)
        elif kind == _TABLE or kind == _ARRAY:
            if len(open_containers) == MAX_DEPTH:
                raise syntax_error(f"table is nested more than {MAX_DEPTH} levels deep")
            inner = _container_end(data, at, stop)
            open_containers.append((inner, set() if kind == _TABLE else None))
            at += 4
        else:
            raise syntax_error(f"table has a value of unknown type {kind}")
        if at > stop:
            raise syntax_error("table value runs past the end of its table")
    return after


def _container_end(data: bytes, at: int, stop: int) -> int:
    if at + 4 > stop:
        raise syntax_error("the length of a table or string is cut off")
    after = at + 4 + int.from_bytes(data[at : at + 4], "big")
    if after > stop:
        raise syntax_error(f"table or string of {after - at - 4} bytes in {stop - at} bytes")
    return after


def _check_key(data: bytes, at: int, stop: int, seen: set[bytes]) -> int:
    after = at + 1 + data[at]
    if after > stop:
        raise syntax_error("table key runs past the end of its table")
    key = data[at + 1 : after]
    if key in seen:
        raise syntax_error(f"table has the key {key!r} twice")
    try:
        key.decode()
    except UnicodeDecodeError:
        raise syntax_error(f"table key {key!r} is not UTF-8") from None
    seen.add(key)
    return after


def decode_table(data: bytes, at: int, end: int) -> tuple[Table, int]:
    """Decodes the table at `at`; returns it and the offset behind it. Raises as `check`."""
    after = check(data, at, end)
    return decode_checked(data[at:after]), after


def entries(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yields keys and raw values (type octet included) of a table that `check` has passed.

    `data` is the whole table, length word first.
    """
    at = 4
    end = 4 + int.from_bytes(data[:4], "big")
    while at < end:
        key = data[at + 1 : at + 1 + data[at]]
        at += 1 + len(key)
        kind = data[at]
        size = _FIXED_BYTES.get(kind)
        if size is None:
            size = 4 + int.from_bytes(data[at + 1 : at + 5], "big")
        yield key, data[at : at + 1 + size]
        at += 1 + size


def items(data: bytes) -> Iterator[bytes]:
    """Yields the raw values of a checked array, length word first."""
    at = 4
    end = 4 + int.from_bytes(data[:4], "big")
    while at < end:
        size = _FIXED_BYTES.get(data[at])
        if size is None:
            size = 4 + int.from_bytes(data[at + 1 : at + 5], "big")
        yield data[at : at + 1 + size]
        at += 1 + size


def join_entries(pairs: Mapping[bytes, bytes]) -> bytes:
    """Returns a whole table of entries as `entries` yields them, length word first."""
    return join_items(bytes((len(key),)) + key + value for key, value in pairs.items())


def join_items(raw: Iterable[bytes]) -> bytes:
    """Returns a whole array of values as `items` yields them, length word first."""
    return _sized(b"".join(raw))


def _sized(raw: bytes) -> bytes:
    return len(raw).to_bytes(4, "big") + raw


def decode_checked(data: bytes) -> Table:
    """Decodes a table that `check` has passed, length word first."""
    return {key.decode(): decode_value(value) for key, value in entries(data)}


def decode_value(raw: bytes) -> FieldValue:
    """Decodes a value with its type octet, as `entries` yields it.

    A timestamp is read as 64 bits with a sign, as the Java client writes it; one outside the years
    1 to 9999 stays a number of seconds. Text that is not UTF-8 stays bytes.
    """
    number = _NUMBERS.get(raw[0])
    if number is not None:
        value = number.unpack_from(raw, 1)[0]
        sized = SIZED.get(raw[0])
        return cast(FieldValue, value if sized is None else sized(value))
    match chr(raw[0]):
        case "S":
            return _text(raw[5:])
        case "F":
            return decode_checked(raw[1:])
        case "A":
            return [decode_value(item) for item in items(raw[1:])]
        case "t":
            return raw[1] != 0
        case "T":
            return _time(int.from_bytes(raw[1:], "big", signed=True))
        case "D":
            return Decimal(int.from_bytes(raw[2:], "big", signed=True)).scaleb(-raw[1])
        case "x":
            return bytearray(raw[5:])
        case _:
            return None


def _time(seconds: int) -> datetime | Timestamp:
    if _FIRST_SECOND <= seconds <= _LAST_SECOND:
        return _EPOCH + timedelta(seconds=seconds)
    return Timestamp(seconds)


def _text(raw: bytes) -> str | bytes:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def encode_table(table: Table) -> bytes:
    """Encodes a table. Raises `ValueError` for a key or value that AMQP can't carry."""
    pairs = {key.encode(): encode_value(value) for key, value in table.items()}
    for key in pairs:
        if len(key) > 255:
            raise ValueError(f"table key of {len(key)} bytes, {key[:20]!r}...: limit 255")
    return join_entries(pairs)


def encode_value(value: FieldValue) -> bytes:
    """Encodes a value with its type octet. Raises as `encode_table`."""
    match value:
        case None:
            return b"V"
        case bool():
            return b"t" + bytes((value,))
        case int():
            return _encode_integer(value)
        case float():
            return b"d" + _NUMBERS[ord("d")].pack(value)
        case str():
            return b"S" + _sized(value.encode())
        case bytes():
            return b"S" + _sized(value)
        case bytearray():
            return b"x" + _sized(bytes(value))
        case datetime():
            return b"T" + _encode_time(value)
        case Decimal():
            return b"D" + _encode_decimal(value)
        case list():
            return b"A" + join_items(map(encode_value, value))
        case dict():
            return b"F" + encode_table(value)


def _encode_integer(value: int) -> bytes:
    if isinstance(value, Timestamp):
        return value.kind + value.to_bytes(8, "big", signed=True)
    if isinstance(value, SizedInt):
        return value.kind + _NUMBERS[value.kind[0]].pack(value)
    if -(2**31) <= value < 2**31:
        return b"I" + value.to_bytes(4, "big", signed=True)
    if -(2**63) <= value < 2**63:
        return b"l" + value.to_bytes(8, "big", signed=True)
    raise ValueError(f"table value {value} exceeds 64 bits")


def _encode_time(value: datetime) -> bytes:
    """Encodes whole seconds; a date without a time zone counts as UTC."""
    seconds = int((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp())
    return seconds.to_bytes(8, "big", signed=True)


def _encode_decimal(value: Decimal) -> bytes:
    """Encodes a scale in one octet and 32 bits with a sign (AMQP 0-9-1 4.2.5.5)."""
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int) and exponent >= -255 and -(2**31) <= value < 2**31:
        unscaled = int(value.scaleb(max(0, -exponent)))
        if -(2**31) <= unscaled < 2**31:
            return bytes((max(0, -exponent),)) + unscaled.to_bytes(4, "big", signed=True)
    raise ValueError(f"table value {value}: 32 bits and at most 255 decimals")


def ranges(data: bytes) -> Iterator[tuple[int, int]]:
    """Yields the offsets of the plain values of a checked table, nested ones included.

    What lies outside these ranges is structure, all that `check` looks at: lengths, keys, types.
    """
    at = 4
    open_containers = [(4 + int.from_bytes(data[:4], "big"), False)]
    while open_containers:
        end, is_array = open_containers[-1]
        if at == end:
            open_containers.pop()
            continue
        if not is_array:
            at += 1 + data[at]
        kind = data[at]
        at += 1
        size = _FIXED_BYTES.get(kind)
        if size is None:
            after = at + 4 + int.from_bytes(data[at : at + 4], "big")
            at += 4
            if kind not in _STRINGS:
                open_containers.append((after, kind == _ARRAY))
                continue
            size = after - at
        yield at, at + size
        at += size
