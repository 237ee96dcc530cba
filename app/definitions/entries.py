"""Converts the entries of exchanges, queues and bindings, each with its place in the file.

This module and `governance.py` check each entry by itself; references, arguments and patterns are
checked by restoring the result (`merge.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from msgspec import UnsetType

from ...core.auth.reserved import is_reserved, refuse_reserved
from ...core.definitions.kinds import BindingDefinition, ExchangeDefinition, QueueDefinition
from ...core.errors import ConfigError
from ...core.message.model import Table
from ...core.vhost import check_name
from ...hub.engine.own import is_own
from .checks import MAX_NAME_BYTES, at, check_length
from .document import BindingEntry, DefinitionsDocument, ExchangeEntry, QueueDefinitionEntry
from .values import table_from_json

_GENERATED = "amq.gen-"
"""Prefix of names that a server has generated; they are accepted here."""
_QUEUE_TYPE = "x-queue-type"
Named = TypeVar("Named", ExchangeDefinition, QueueDefinition)


def exchanges(
    entries: list[ExchangeEntry] | UnsetType,
) -> Iterator[tuple[str, ExchangeDefinition]]:
    for number, entry in enumerate(entries or ()):
        place = f"exchanges[{number}]"
        with at(place):
            check_length("exchange", entry.name)
            check_name("exchange", entry.name, entry.vhost)
            yield place, _not_reserved(ExchangeDefinition(
                entry.vhost, entry.name, entry.type, entry.auto_delete, entry.internal,
                _arguments(entry.arguments),
            ))  # fmt: skip


def queues(
    entries: list[QueueDefinitionEntry] | UnsetType,
) -> Iterator[tuple[str, QueueDefinition]]:
    """Returns queues with the id 0, since the file has no ids."""
    for number, entry in enumerate(entries or ()):
        place = f"queues[{number}]"
        with at(place):
            check_length("queue", entry.name)
            check_name("queue", entry.name.removeprefix(_GENERATED), entry.vhost)
            arguments = _queue_arguments(entry)
            found = QueueDefinition(entry.vhost, entry.name, 0, entry.auto_delete, arguments)
            yield place, _not_reserved(found)


def bindings(entries: list[BindingEntry] | UnsetType) -> Iterator[tuple[str, BindingDefinition]]:
    for number, entry in enumerate(entries or ()):
        place = f"bindings[{number}]"
        with at(place):
            _check_key(entry.routing_key)
            yield place, BindingDefinition(
                entry.vhost, entry.source, entry.destination_type == "exchange",
                entry.destination, entry.routing_key, _arguments(entry.arguments),
            )  # fmt: skip


def made_durable(document: DefinitionsDocument) -> set[bytes]:
    """Makes all exchanges and queues durable; returns the keys of those that were not."""
    keys: set[bytes] = set()
    for exchange in document.exchanges or ():
        if not exchange.durable:
            exchange.durable = True
            keys.add(ExchangeDefinition(exchange.vhost, exchange.name, "", False, False, {}).key())
    for queue in document.queues or ():
        if not queue.durable:
            queue.durable = True
            keys.add(QueueDefinition(queue.vhost, queue.name, 0, False, {}).key())
    return keys


def _not_reserved(found: Named) -> Named:
    """Returns the entry; raises `ConfigError` for a reserved name, except those of the hub's own
    exchanges and queues as they are exported."""
    if is_reserved(found.name) and not is_own(found):
        kind = "exchange" if isinstance(found, ExchangeDefinition) else "queue"
        refuse_reserved(found.vhost, kind, found.name)
    return found


def _queue_arguments(entry: QueueDefinitionEntry) -> Table:
    """Returns the arguments with the queue type, which newer RabbitMQs write beside them."""
    arguments = _arguments(entry.arguments)
    written = arguments.get(_QUEUE_TYPE, entry.type)
    if entry.type not in (None, written):
        raise ConfigError(f"type is '{entry.type}' and {_QUEUE_TYPE} is {written!r}")
    if entry.type not in (None, "classic"):
        arguments[_QUEUE_TYPE] = entry.type
    return arguments


def _arguments(found: dict[str, Any]) -> Table:
    with at("arguments"):
        return table_from_json(found)


def _check_key(key: str) -> None:
    size = len(key.encode())
    if size > MAX_NAME_BYTES:
        raise ConfigError(f"a routing key has {size} bytes, at most {MAX_NAME_BYTES}")
