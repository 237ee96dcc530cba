"""Bindings as documents, and the key that tells those between the same ends apart."""

from __future__ import annotations

import hashlib
import json
from typing import Any, NamedTuple
from urllib.parse import quote

from ....core.message.model import Table
from ....core.queue.queue import Queue
from ....core.route.binding import Binding
from ....core.route.exchange import Exchange
from ...definitions.values import table_to_json


class ListedBinding(NamedTuple):
    """A binding with its source; None for the default exchange, to which each queue is bound."""

    source: Exchange | None
    binding: Binding


def default_binding(queue: Queue) -> ListedBinding:
    return ListedBinding(None, Binding(queue, queue.name, {}))


def binding_json(bound: ListedBinding) -> dict[str, Any]:
    source, binding = bound
    destination = binding.destination
    assert isinstance(destination, (Queue, Exchange))
    return {
        "source": "" if source is None else source.name,
        "vhost": destination.vhost,
        "destination": destination.name,
        "destination_type": "queue" if isinstance(destination, Queue) else "exchange",
        "routing_key": binding.routing_key,
        "arguments": table_to_json(binding.arguments),
        "properties_key": properties_key(binding.routing_key, binding.arguments),
    }


def properties_key(key: str, arguments: Table) -> str:
    """Returns what tells bindings between the same ends apart, as RabbitMQ writes it."""
    name = quote(key, safe="").replace("~", "%7E")
    if not arguments:
        return name or "~"
    text = json.dumps(table_to_json(arguments), sort_keys=True)
    return f"{name}~{hashlib.sha256(text.encode()).hexdigest()[:22]}"
