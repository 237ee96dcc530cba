"""Makes virtual hosts, users, exchanges, queues and bindings of what the store has kept.

Nothing is written and nothing is sent. Kind after kind is made, so the order of the definitions
decides only which one stands before another of its kind.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from ..auth import AuthError
from ..errors import ChannelError, ConfigError
from ..queue.arguments import read_rules
from ..queue.queue import Queue
from ..route.binding import Destination
from ..route.registry import make
from ..vhost import VirtualHost
from .decode import BadDefinition, decode
from .kinds import (
    BindingDefinition,
    Definition,
    ExchangeDefinition,
    Kind,
    PermissionDefinition,
    QueueDefinition,
    UserDefinition,
    VhostDefinition,
    described,
)

if TYPE_CHECKING:
    from ..broker import Broker

logger = logging.getLogger(__name__)


def restore(broker: Broker) -> None:
    """Replaces the virtual hosts of a broker that has no users, and adds users.

    Raises `BadDefinition` naming a definition that can't be decoded, refers to something that is
    missing, or asks for what this Warren does not know; messages have not been asked for then.
    """
    restored = _Restored(broker)
    with _nothing_collected(), ExitStack() as paused:
        restored.make(paused)
    broker.vhosts.clear()
    broker.vhosts.update(restored.vhosts)
    for vhost in restored.vhosts.values():
        for queue in vhost.queues.values():
            queue.recover(broker.store.recovered(queue))


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """All that is made stays: looking for garbage among it took half of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _by_kind(definitions: Mapping[bytes, bytes]) -> list[bytes]:
    """The keys, those first that others refer to. What is of no known kind comes last."""
    last = max(Kind) + 1
    places: list[list[bytes]] = [[] for _ in range(last + 1)]
    for key in definitions:
        places[min(key[0] if key else last, last)].append(key)
    return [key for place in places for key in place]


class _Restored:
    """What has been made so far."""

    def __init__(self, broker: Broker) -> None:
        self.vhosts: dict[str, VirtualHost] = {}
        self._broker = broker

    def make(self, paused: ExitStack) -> None:
        definitions = self._broker.store.definitions
        for key in _by_kind(definitions):
            definition = decode(key, definitions[key])
            try:
                self._make(definition, paused)
            except (AuthError, ChannelError, ConfigError) as error:
                raise BadDefinition(key, f"{described(definition)}: {error}") from error

    def _make(self, definition: Definition, paused: ExitStack) -> None:
        match definition:
            case BindingDefinition():
                self._binding(definition)
            case QueueDefinition():
                self._queue(definition)
            case ExchangeDefinition():
                self._exchange(definition)
            case PermissionDefinition():
                self._permission(definition)
            case UserDefinition(name, password_hash, tags):
                self._broker.users.add_hashed(name, password_hash, tags)
            case VhostDefinition(name):
                vhost = self.vhosts[name] = VirtualHost(name, self._broker)
                paused.enter_context(vhost.keeper.paused())

    def _permission(self, found: PermissionDefinition) -> None:
        self._vhost(found.vhost)
        self._broker.users.set_permissions(
            found.user, found.vhost, found.configure, found.write, found.read
        )

    def _exchange(self, found: ExchangeDefinition) -> None:
        vhost = self._vhost(found.vhost)
        if found.name in vhost.exchanges:
            raise ConfigError("every vhost has it, it can't be defined")
        exchange = make(
            found.type_name, found.name, durable=True, auto_delete=found.auto_delete,
            internal=found.internal, arguments=found.arguments, vhost=vhost.name,
        )  # fmt: skip
        vhost.add_exchange(exchange)

    def _queue(self, found: QueueDefinition) -> None:
        vhost = self._vhost(found.vhost)
        rules = read_rules(found.name, vhost.name, found.arguments)
        vhost.queues[found.name] = Queue(
            found.name, vhost.name, self._broker, found.id, durable=True,
            auto_delete=found.auto_delete, arguments=found.arguments, rules=rules,
        )  # fmt: skip

    def _binding(self, found: BindingDefinition) -> None:
        vhost = self._vhost(found.vhost)
        source = vhost.exchanges.get(found.source)
        destinations: Mapping[str, Destination]
        destinations = vhost.exchanges if found.to_exchange else vhost.queues
        destination = destinations.get(found.destination)
        if source is None or destination is None:
            missing = "exchange" if source is None or found.to_exchange else "queue"
            name = found.source if source is None else found.destination
            raise _missing(missing, name)
        vhost.bind(source, destination, found.routing_key, found.arguments)

    def _vhost(self, name: str) -> VirtualHost:
        vhost = self.vhosts.get(name)
        if vhost is None:
            raise _missing("vhost", name)
        return vhost


def _missing(kind: str, name: str) -> ConfigError:
    return ConfigError(f"there is no {kind} '{name}'")
