"""Queues without contents, and exchanges declared in one call."""

from __future__ import annotations

from warrenmq.core.message.model import FieldValue, Table
from warrenmq.core.route.exchange import Exchange
from warrenmq.core.route.registry import make
from warrenmq.core.route.route import Destination


class FakeQueue(Destination):
    """A destination and nothing else."""

    def __repr__(self) -> str:
        return self.name


def unbind_each(source: Exchange, destination: Destination) -> int:
    """Removes all bindings to one destination; returns their number."""
    bound = tuple(source.bindings_to(destination))
    return sum(source.unbind(destination, one.routing_key, one.arguments) for one in bound)


def exchange(type_name: str, name: str = "x", /, **arguments: FieldValue) -> Exchange:
    """Creates a durable exchange; arguments are written with `_` for `-`."""
    table: Table = {key.replace("_", "-"): value for key, value in arguments.items()}
    return make(type_name, name, durable=True, auto_delete=False, internal=False, arguments=table)
