"""Writes the headers of dead letters: x-death, x-first-death-* and x-last-death-*.

`x-death` is an array of tables, newest first, one per queue and reason, with a count of how often
that happened. Only what changes is decoded: publishers may send an x-death of their own, and
headers that our encoder would not reproduce byte for byte.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from ..message.model import FieldValue
from .properties import EXPIRATION, HEADERS, join, split
from .tables import (
    decode_value,
    encode_value,
    entries,
    items,
    join_entries,
    join_items,
)

_EMPTY_TABLE: Final = b"\x00\x00\x00\x00"
_COUNT_MAX: Final = 2**63 - 1
_REJECTED: Final = encode_value("rejected")
_ONCE: Final = b"l" + (1).to_bytes(8, "big")

_Death = dict[bytes, bytes]
"""One entry of `x-death`: keys and raw values."""


class DeadLetterProperties(NamedTuple):
    """The property list of a dead letter.

    `copies` are the routing keys of CC, empty if the queue has a dead-letter routing key.
    """

    properties: bytes
    copies: list[str]
    deaths: Sequence[_Death]


def add_death(
    raw: bytes,
    *,
    queue: str,
    reason: str,
    exchange: str,
    routing_key: str,
    time_s: int,
    keep_keys: bool,
) -> DeadLetterProperties:
    """Adds an entry of `x-death` to a property list that `read_attributes` has passed."""
    parts = split(raw)
    table = parts.get(HEADERS, _EMPTY_TABLE)
    expiration = parts.pop(EXPIRATION, None)
    if b"-death" not in table and b"CC" not in table:
        added, deaths = _first_death(queue, reason, exchange, routing_key, time_s, expiration)
        parts[HEADERS] = (len(table) - 4 + len(added)).to_bytes(4, "big") + table[4:] + added
        return DeadLetterProperties(join(parts), [], deaths)
    pairs = dict(entries(table))
    copies = _keys(pairs, b"CC")
    death = _death(queue, reason, exchange, [routing_key, *copies], time_s, expiration)
    _set_last_death(pairs, death)
    deaths = _merge(_history(pairs), death)
    pairs[b"x-death"] = _array(deaths)
    if not keep_keys:
        pairs.pop(b"CC", None)
    parts[HEADERS] = join_entries(pairs)
    return DeadLetterProperties(join(parts), copies if keep_keys else [], deaths)


@lru_cache(64)
def _first_death(
    queue: str, reason: str, exchange: str, key: str, time_s: int, expiration: bytes | None
) -> tuple[bytes, Sequence[_Death]]:
    """Returns the encoded headers, and the history, for a message without one."""
    death = _death(queue, reason, exchange, [key], time_s, expiration)
    pairs: dict[bytes, bytes] = {}
    _set_last_death(pairs, death)
    pairs[b"x-death"] = _array([death])
    return join_entries(pairs)[4:], (death,)


def _death(
    queue: str,
    reason: str,
    exchange: str,
    keys: list[FieldValue],
    time_s: int,
    expiration: bytes | None,
) -> _Death:
    death = {
        b"count": _ONCE,
        b"exchange": encode_value(exchange),
        b"queue": encode_value(queue),
        b"reason": encode_value(reason),
        b"routing-keys": encode_value(keys),
        b"time": b"T" + time_s.to_bytes(8, "big"),
    }
    if expiration is not None:
        death[b"original-expiration"] = encode_value(expiration[1:].decode())
    return death


def _set_last_death(pairs: dict[bytes, bytes], death: _Death) -> None:
    """Sets the headers of the last death, and those of the first, unless there was one."""
    is_first = not _history(pairs)
    for name in (b"queue", b"reason", b"exchange"):
        first = b"x-first-death-" + name
        pairs[first] = death[name] if is_first else pairs.get(first, death[name])
        pairs[b"x-last-death-" + name] = death[name]


def _array(deaths: Sequence[_Death]) -> bytes:
    return b"A" + join_items(b"F" + join_entries(death) for death in deaths)


def would_cycle(deaths: Sequence[_Death], target: str, reason: str) -> bool:
    """Whether the message was dead-lettered from `target` before and not rejected since.

    Such a message would be dead-lettered forever; a rejection by a consumer breaks the cycle.
    """
    if reason == "rejected":
        return False
    name = encode_value(target)
    for death in deaths:
        if death.get(b"reason") == _REJECTED:
            return False
        if death.get(b"queue") == name:
            return True
    return False


def _history(pairs: dict[bytes, bytes]) -> list[_Death]:
    raw = pairs.get(b"x-death", b"V")
    if raw[:1] != b"A":
        return []
    return [dict(entries(item[1:])) for item in items(raw[1:]) if item[:1] == b"F"]


def _merge(history: list[_Death], death: _Death) -> list[_Death]:
    """Adds a death to the history: an entry of the same queue and reason is counted up and moved
    to the front."""
    if not history:
        return [death]
    grouped = _grouped(history)
    same = grouped.pop(_pair(death), None)
    if same is None:
        return [death, *grouped.values()]
    counted = decode_value(same.get(b"count", b"V"))
    again = _count(counted + 1 if isinstance(counted, int) else 1)
    return [{**same, b"count": again}, *grouped.values()]


def _grouped(history: list[_Death]) -> dict[tuple[bytes | None, bytes | None], _Death]:
    """Returns the newest entry of each queue and reason, with its own count, or else their number:
    old brokers added an entry for each death, without a count."""
    grouped: dict[tuple[bytes | None, bytes | None], _Death] = {}
    for old in history:
        grouped.setdefault(_pair(old), old)
    for pair, many in Counter(map(_pair, history)).items():
        if many > 1 and b"count" not in grouped[pair]:
            grouped[pair] = {**grouped[pair], b"count": _count(many)}
    return grouped


def _pair(death: _Death) -> tuple[bytes | None, bytes | None]:
    return death.get(b"queue"), death.get(b"reason")


def _count(number: int) -> bytes:
    """Encodes a count, always with 64 bits, because clients in typed languages cast it."""
    return b"l" + min(number, _COUNT_MAX).to_bytes(8, "big", signed=True)


def _keys(pairs: dict[bytes, bytes], name: bytes) -> list[str]:
    if name not in pairs:
        return []
    value = decode_value(pairs[name])
    if not isinstance(value, list):
        return []
    return [key for key in value if isinstance(key, str)]
