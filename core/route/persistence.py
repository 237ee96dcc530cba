"""Exchanges that keep what was published, and bindings that ask for it (AvalancheMQ).

`x-persist-messages` and `x-persist-ms` go with any type. The messages are in an inner queue, a
stream (core/queue/retained.py), which reads the one log; a binding says which of them its queue
gets first (core/replay/replay.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import precondition_failed
from ..message.equivalence import shown
from ..message.model import Table
from .arguments import ExchangeArguments

MESSAGES = "x-persist-messages"
AGE = "x-persist-ms"
ARGUMENTS = frozenset({MESSAGES, AGE})
_MAX = 2**63 - 1
_PLACES = ("x-head", "x-tail", "x-from")


@dataclass(frozen=True, slots=True)
class ExchangePersistence:
    """The last `messages`, or those of the last `ms`; both: what satisfies both.

    `marks` if copies carry their `x-offset`; `always` if each new binding gets them.
    """

    messages: int | None
    ms: int | None
    adds_offsets: bool = True
    replays_by_default: bool = False


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """What a binding wants of what is kept.

    `head` n: the oldest n, or all but the last -n; `tail` n: the newest n, or all but the first
    -n; `since`: from this offset on.
    """

    head: int | None = None
    tail: int | None = None
    since: int | None = None


def read_persistence(arguments: ExchangeArguments) -> ExchangePersistence | None:
    """None for an exchange that keeps nothing. Raises `ChannelError` 406."""
    messages = arguments.integer(MESSAGES, 1, _MAX)
    ms = arguments.integer(AGE, 1, _MAX)
    return None if messages is None and ms is None else ExchangePersistence(messages, ms)


def read_replay_request(arguments: Table) -> ReplayRequest | None:
    """None for a binding that wants only what comes. Raises `ChannelError` 406."""
    given = [name for name in _PLACES if name in arguments]
    if not given:
        return None
    if len(given) > 1:
        raise precondition_failed(f"{' and '.join(given)} of one binding exclude each other")
    name = given[0]
    value = arguments[name]
    if isinstance(value, bool) or not isinstance(value, int):
        raise precondition_failed(f"invalid {name} '{shown(value)}': a whole number is needed")
    if name == "x-from":
        if value < 0:
            raise precondition_failed(f"invalid x-from '{value}': an offset is 0 or more")
        return ReplayRequest(since=value)
    return ReplayRequest(head=value) if name == "x-head" else ReplayRequest(tail=value)
