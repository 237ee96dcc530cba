"""Checks who may use an exclusive queue, and whether a declaration repeats the first one."""

from __future__ import annotations

from ..errors import ChannelError, resource_locked
from ..message.equivalence import check_equivalent, inequivalent_argument, resource
from ..message.model import FieldValue, Table
from .arguments import KNOWN, DeclaredArguments
from .queue import Queue


def check_owner(queue: Queue, owner: object | None) -> None:
    """Raises `ChannelError` 405 if the queue is exclusive to another connection than `owner`."""
    if queue.owner is not None and queue.owner is not owner:
        raise _locked(queue)


def check_redeclaration(
    queue: Queue, declared: DeclaredArguments, arguments: Table, owner: object | None
) -> None:
    """Raises `ChannelError` 405 or 406 if the declaration differs from the existing queue.

    Only known arguments are compared.
    """
    check_owner(queue, owner)
    if declared.exclusive != (queue.owner is not None):
        raise _locked(queue)
    pairs: list[tuple[str, FieldValue, FieldValue]] = [
        ("durable", declared.durable and not declared.exclusive, queue.durable),
        ("auto_delete", declared.auto_delete, queue.auto_delete),
    ]
    names = sorted((arguments.keys() | queue.arguments.keys()) & KNOWN)
    pairs += [(name, arguments.get(name), queue.arguments.get(name)) for name in names]
    for argument, received, current in pairs:
        check_equivalent("queue", queue.name, queue.vhost, argument, received, current)
    for name in (arguments.keys() - queue.arguments.keys()) & KNOWN:
        # An argument without a value still counts: the first declaration would refuse it.
        raise inequivalent_argument("queue", queue.name, queue.vhost, name, None, None)


def _locked(queue: Queue) -> ChannelError:
    return resource_locked(
        f"cannot obtain exclusive access to locked {resource('queue', queue.name, queue.vhost)}. "
        "It could be originally declared on another connection or the exclusive property value "
        "does not match that of the original declaration."
    )
