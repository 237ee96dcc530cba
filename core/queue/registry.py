"""Queue types by name: those that clients declare, and inner ones that belong to exchanges.

An inner queue stores messages for an exchange (delayed, persistent). Clients can't name it: its
name has a line end, which names of clients must not have.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from ..errors import ConfigError
from ..message.model import Table
from .arguments import Declared, queue_type, read_rules
from .classic import ClassicQueue
from .queue import Queue
from .rules import PLAIN, Rules

if TYPE_CHECKING:
    from .context import QueueContext

QueueType = TypeVar("QueueType", bound=type[Queue])

INNER_MARK = "\n"
_types: dict[str, type[Queue]] = {"classic": ClassicQueue, "quorum": ClassicQueue}
_inner_types: dict[str, type[Queue]] = {}


def register_queue(kind: str) -> Callable[[QueueType], QueueType]:
    """Class decorator: registers the class of an `x-queue-type`."""
    return partial(_register, _types, kind)


def register_inner(kind: str) -> Callable[[QueueType], QueueType]:
    """Class decorator: registers the inner queue class of exchanges with that `inner_kind`."""
    return partial(_register, _inner_types, kind)


def _register(types: dict[str, type[Queue]], kind: str, queue_class: QueueType) -> QueueType:
    if kind in types:
        raise ValueError(f"queue type '{kind}' is registered already")
    types[kind] = queue_class
    return queue_class


def inner_name(kind: str, exchange: str) -> str:
    return f"{kind}{INNER_MARK}{exchange}"


def _inner_type(kind: str) -> type[Queue]:
    found = _inner_types.get(kind)
    if found is None:
        known = ", ".join(sorted(_inner_types))
        raise ConfigError(f"there is no inner queue type {kind!r}, there are {known}")
    return found


def make_queue(
    declared: Declared,
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
        queue_class = _types[queue_type(declared, arguments)]
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
