"""Queue types by name: those that clients declare, and inner ones that belong to exchanges.

An inner queue stores messages for an exchange (delayed, persistent). Clients can't name it: its
name has a line end, which names of clients must not have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..errors import ConfigError
from ..message.model import Table
from .arguments import DeclaredArguments, queue_type, read_rules
from .classic import ClassicQueue
from .delay import DelayQueue
from .names import INNER_MARK
from .queue import Queue
from .retained import RetainedQueue
from .rules import PLAIN, Rules
from .stream import StreamQueue

if TYPE_CHECKING:
    from .context import QueueContext

queue_types: Final[dict[str, type[Queue]]] = {
    "classic": ClassicQueue,
    "quorum": ClassicQueue,
    "stream": StreamQueue,
}
"""The classes by `x-queue-type`."""
inner_types: Final[dict[str, type[Queue]]] = {"delay": DelayQueue, "retained": RetainedQueue}
"""The classes by the `inner_kind` of exchanges."""


def _inner_type(kind: str) -> type[Queue]:
    found = inner_types.get(kind)
    if found is None:
        known = ", ".join(sorted(inner_types))
        raise ConfigError(f"unknown inner queue type {kind!r}; known: {known}")
    return found


def make_queue(
    declared: DeclaredArguments,
    broker: QueueContext,
    queue_id: int,
    *,
    owner: object | None = None,
    arguments: Table,
    strict: bool = False,
) -> Queue:
    """Creates a queue as declared.

    Raises `ChannelError` 406 for invalid arguments, and `ConfigError` for the name of an inner
    queue of an unknown type.
    """
    if INNER_MARK in declared.name:
        queue_class = _inner_type(declared.name.split(INNER_MARK)[0])
        rules: Rules | None = PLAIN
    else:
        queue_class = queue_types[queue_type(declared, arguments)]
        rules = read_rules(declared, arguments, strict=strict)
    return queue_class(
        declared.name,
        declared.vhost,
        broker,
        queue_id,
        # An exclusive queue is deleted with its connection, so nothing is stored.
        durable=declared.durable and not declared.exclusive,
        auto_delete=declared.auto_delete,
        owner=owner if declared.exclusive else None,
        arguments=arguments,
        rules=rules,
    )
