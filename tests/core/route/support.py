"""Queues without contents, and exchanges made by one word."""

from __future__ import annotations

from warrenmq.core.message.model import FieldValue, Table
from warrenmq.core.route.exchange import Destination, Exchange
from warrenmq.core.route.registry import make


class FakeQueue:
    """A destination and nothing else."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.deleted = False

    def __repr__(self) -> str:
        return self.name


def unbind_each(source: Exchange, destination: Destination) -> int:
    """Takes away every binding to one destination; gives how many there were."""
    bound = tuple(source.bindings_to(destination))
    return sum(source.unbind(destination, one.routing_key, one.arguments) for one in bound)


def exchange(type_name: str, name: str = "x", /, **arguments: FieldValue) -> Exchange:
    """A durable exchange; arguments are written with `_` for `-`."""
    table: Table = {key.replace("_", "-"): value for key, value in arguments.items()}
    return make(type_name, name, durable=True, auto_delete=False, internal=False, arguments=table)
