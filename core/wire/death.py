"""The history that a dead letter carries: x-death and its companions.

`x-death` is an array of tables, newest first, one per queue and reason, with a count of how often
that happened. Only what changes is decoded: a message may come with a history of its own making,
and with headers that no encoder of ours would give back byte for byte.
"""

from __future__ import annotations

from ..model import Table
from .properties import EXPIRATION, HEADERS, join, split
from .tables import (
    decode_checked,
    decode_value,
    encode_value,
    entries,
    items,
    join_entries,
    join_items,
)  # fmt: skip

_EMPTY_TABLE = b"\x00\x00\x00\x00"
_COUNT_MAX = 2**63 - 1

_Death = dict[bytes, bytes]
"""One entry of the history: keys and raw values."""


def add_death(
    raw: bytes,
    *,
    queue: str,
    reason: str,
    exchange: str,
    routing_key: str,
    time_s: int,
    keep_keys: bool,
) -> tuple[bytes, list[str], Table]:
    """Adds one death to a property list that `read_traits` has passed.

    Gives the new list, the extra routing keys that travel on (CC, unless the queue sets its own
    key) and the headers, decoded.
    """
    parts = split(raw)
    pairs = dict(entries(parts.get(HEADERS, _EMPTY_TABLE)))
    expiration = parts.pop(EXPIRATION, None)
    copies = _keys(pairs, b"CC")
    death = {
        b"count": _count(1),
        b"exchange": encode_value(exchange),
        b"queue": encode_value(queue),
        b"reason": encode_value(reason),
        b"routing-keys": encode_value([routing_key, *copies]),
        b"time": b"T" + time_s.to_bytes(8, "big"),
    }
    if expiration is not None:
        death[b"original-expiration"] = encode_value(expiration[1:].decode())
    deaths = _merge(_history(pairs), death)
    pairs[b"x-death"] = b"A" + join_items(b"F" + join_entries(death) for death in deaths)
    for name in (b"queue", b"reason", b"exchange"):
        pairs.setdefault(b"x-first-death-" + name, death[name])
        pairs[b"x-last-death-" + name] = death[name]
    if not keep_keys:
        pairs.pop(b"CC", None)
    parts[HEADERS] = join_entries(pairs)
    return join(parts), copies if keep_keys else [], decode_checked(parts[HEADERS])


def would_cycle(headers: Table, target: str, reason: str) -> bool:
    """True if the message has been dead in `target` before and nobody rejected it since.

    Such a message would go round for ever; a rejection is a consumer's doing and breaks the
    cycle.
    """
    if reason == "rejected":
        return False
    history = headers.get("x-death")
    if not isinstance(history, list):
        return False
    for death in history:
        if not isinstance(death, dict):
            continue
        if death.get("reason") == "rejected":
            return False
        if death.get("queue") == target:
            return True
    return False


def _history(pairs: dict[bytes, bytes]) -> list[_Death]:
    raw = pairs.get(b"x-death", b"V")
    if raw[:1] != b"A":
        return []
    return [dict(entries(item[1:])) for item in items(raw[1:]) if item[:1] == b"F"]


def _merge(history: list[_Death], death: _Death) -> list[_Death]:
    """Same queue and reason: count up and move to the front."""
    for place, old in enumerate(history):
        if old.get(b"queue") == death[b"queue"] and old.get(b"reason") == death[b"reason"]:
            counted = decode_value(old.get(b"count", b"V"))
            again = _count(counted + 1 if isinstance(counted, int) else 1)
            return [{**old, b"count": again}, *history[:place], *history[place + 1 :]]
    return [death, *history]


def _count(number: int) -> bytes:
    """Always 64 bits wide, for clients in typed languages cast it."""
    return b"l" + min(number, _COUNT_MAX).to_bytes(8, "big", signed=True)


def _keys(pairs: dict[bytes, bytes], name: bytes) -> list[str]:
    value = decode_value(pairs.get(name, b"V"))
    if not isinstance(value, list):
        return []
    return [key for key in value if isinstance(key, str)]
