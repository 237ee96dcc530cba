"""Arguments of persistent exchanges, and of bindings that replay their messages (AvalancheMQ).

An exchange of any type may have `x-persist-messages` and `x-persist-ms`. Its messages are in an
inner queue, a stream (core/queue/retained.py); a binding says which of them its queue gets first
(core/replay/replay.py).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ..errors import precondition_failed
from ..message.equivalence import value_text
from ..message.model import Table
from .arguments import ExchangeArguments

MESSAGES: Final = "x-persist-messages"
AGE: Final = "x-persist-ms"
ARGUMENTS: Final = frozenset({MESSAGES, AGE})
_MAX: Final = 2**63 - 1
_REPLAY_ARGUMENTS: Final = ("x-head", "x-tail", "x-from")


class ExchangePersistence(NamedTuple):
    """Limits of the stored messages: the last `messages`, and those of the last `ms` milliseconds.

    `adds_offsets` if copies carry their `x-offset`; `replays_by_default` if each new binding gets
    the stored messages.
    """

    messages: int | None
    ms: int | None
    adds_offsets: bool = True
    replays_by_default: bool = False


class ReplayRequest(NamedTuple):
    """The stored messages that a new binding gets.

    `head` n: the oldest n, or all but the last -n; `tail` n: the newest n, or all but the first
    -n; `since`: from this offset on.
    """

    head: int | None = None
    tail: int | None = None
    since: int | None = None


def read_persistence(arguments: ExchangeArguments) -> ExchangePersistence | None:
    """Returns the settings, None for an exchange that stores nothing. Raises `ChannelError` 406."""
    messages = arguments.integer(MESSAGES, 1, _MAX)
    ms = arguments.integer(AGE, 1, _MAX)
    return None if messages is None and ms is None else ExchangePersistence(messages, ms)


def read_replay_request(arguments: Table) -> ReplayRequest | None:
    """Returns the request, None for a binding without one. Raises `ChannelError` 406."""
    names = [name for name in _REPLAY_ARGUMENTS if name in arguments]
    if not names:
        return None
    if len(names) > 1:
        raise precondition_failed(f"{' and '.join(names)} of one binding are mutually exclusive")
    name = names[0]
    value = arguments[name]
    if isinstance(value, bool) or not isinstance(value, int):
        raise precondition_failed(f"invalid {name} '{value_text(value)}': a whole number is needed")
    if name == "x-from":
        if value < 0:
            raise precondition_failed(f"invalid x-from '{value}': an offset is 0 or more")
        return ReplayRequest(since=value)
    return ReplayRequest(head=value) if name == "x-head" else ReplayRequest(tail=value)
