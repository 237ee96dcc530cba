"""The default queue type of a virtual host, for queues declared without `x-queue-type`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..message.model import Table

if TYPE_CHECKING:
    from ..vhost import VirtualHost

PROPERTY: Final = "default_queue_type"
ARGUMENT: Final = "x-queue-type"


def with_default_type(
    vhost: VirtualHost,
    name: str,
    arguments: Table,
    *,
    durable: bool,
    exclusive: bool,
    auto_delete: bool,
) -> Table:
    """Returns the arguments with the default type of the virtual host if they name none.

    Only named, durable queues can be of another type than classic, so no others get one; an
    existing queue keeps its type.
    """
    default = vhost.properties.get(PROPERTY)
    if not default or ARGUMENT in arguments:
        return arguments
    found = vhost.queues.get(name)
    if found is not None:
        there = found.arguments.get(ARGUMENT)
        return arguments if there is None else {**arguments, ARGUMENT: there}
    if not name or not durable or exclusive or auto_delete:
        return arguments
    return {**arguments, ARGUMENT: default}
