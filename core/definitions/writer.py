"""Writes the definitions of virtual hosts to the store; nothing here waits for the disk.

Definitions are deleted in an order that never leaves one without what it refers to, wherever a
crash cuts the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..errors import precondition_failed
from ..queue.queue import Queue
from ..route.exchange import Exchange
from . import kinds
from .facts import exchange_owner, queue_owner, vhost_owner
from .fields import VERSION
from .keys import DefinitionKind, key_of

if TYPE_CHECKING:
    from ..message.model import Table
    from ..route.binding import Binding
    from .facts import Facts
    from .set_aside import UnappliedDefinitions


class DefinitionWriter:
    """Writes the definitions of one virtual host."""

    __slots__ = ("_facts", "_paused", "_set_aside", "_vhost")

    def __init__(self, set_aside: UnappliedDefinitions, vhost: str, facts: Facts) -> None:
        self._set_aside = set_aside
        self._vhost = vhost
        self._facts = facts
        self._paused = False

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Writes nothing inside: objects declared there are restored from the store."""
        self._paused = True
        try:
            yield
        finally:
            self._paused = False

    def save_vhost(self, properties: Table | None = None) -> None:
        """Stores the virtual host with these properties, replacing those before."""
        self._define(kinds.VhostDefinition(self._vhost, properties or {}))

    def save_limits(self, limits: Table) -> None:
        """Stores all limits, replacing those before; an empty table deletes them."""
        if limits:
            self._define(kinds.VhostLimitsDefinition(self._vhost, limits))
        else:
            self._delete(key_of(DefinitionKind.VHOST_LIMITS, self._vhost))

    def delete_vhost(self) -> None:
        """Deletes the virtual host, after all that is in it and permissions for it."""
        self.save_limits({})
        self._facts.end(vhost_owner(self._vhost))
        self._delete_with_rest(key_of(DefinitionKind.VHOST, self._vhost))

    def save_policy(
        self, definition: kinds.PolicyDefinition | kinds.OperatorPolicyDefinition
    ) -> None:
        self._define(definition)

    def delete_policy(
        self, definition: kinds.PolicyDefinition | kinds.OperatorPolicyDefinition
    ) -> None:
        self._delete(definition.key())

    def save_exchange(self, exchange: Exchange) -> None:
        """Raises `ChannelError` 406 for arguments that can't be stored."""
        if exchange.durable:
            self._define(
                kinds.ExchangeDefinition(
                    self._vhost, exchange.name, exchange.type_name, exchange.auto_delete,
                    exchange.internal, exchange.arguments,
                )
            )  # fmt: skip

    def delete_exchange(self, exchange: Exchange) -> None:
        """Deletes an exchange, after its bindings."""
        if exchange.durable:
            self._facts.end(exchange_owner(self._vhost, exchange.name))
            self._delete_with_rest(key_of(DefinitionKind.EXCHANGE, self._vhost, exchange.name))

    def delete_lost_exchange(self, name: str) -> None:
        """Deletes what is set aside of an exchange that does not exist."""
        self._set_aside.delete(key_of(DefinitionKind.EXCHANGE, self._vhost, name))

    def save_queue(self, queue: Queue) -> None:
        """Raises `ChannelError` 406 for arguments that can't be stored."""
        if queue.durable:
            self._define(
                kinds.QueueDefinition(
                    self._vhost, queue.name, queue.id, queue.auto_delete, queue.arguments
                )
            )

    def delete_queue(self, queue: Queue) -> None:
        """Deletes a queue, after its bindings and messages."""
        if queue.durable:
            self._facts.end(queue_owner(queue.id))
            self._delete_with_rest(key_of(DefinitionKind.QUEUE, self._vhost, queue.name))

    def delete_lost_queue(self, name: str) -> None:
        """Deletes what is set aside of a queue that does not exist; its messages stay in
        quarantine."""
        self._set_aside.delete(key_of(DefinitionKind.QUEUE, self._vhost, name))

    # -- bindings; implements `BindingStorage`

    def binding_key(self, source: Exchange, binding: Binding) -> bytes | None:
        """Returns the key of a binding; None if one of its ends is not durable.

        Raises `ChannelError` 406 for arguments that can't be stored.
        """
        destination = binding.destination
        if self._paused or not (source.durable and destination.durable):
            return None
        definition = kinds.BindingDefinition(
            self._vhost, source.name, isinstance(destination, Exchange), destination.name,
            binding.routing_key, binding.arguments,
        )  # fmt: skip
        try:
            return definition.key()
        except ValueError as error:
            raise _unstorable(definition, error) from error

    def bound(self, key: bytes) -> None:
        """Stores a binding under its `binding_key`."""
        self._set_aside.define(key, VERSION)

    def unbound(self, source: Exchange, binding: Binding) -> None:
        key = self.binding_key(source, binding)
        if key is not None:
            self._set_aside.define(key, None)

    def delete_lost_binding(self, source: Exchange, binding: Binding) -> None:
        """Deletes a binding that is set aside, where none exists."""
        key = self.binding_key(source, binding)
        if key is not None:
            self._set_aside.delete(key)

    def _define(self, definition: kinds.Definition) -> None:
        if self._paused:
            return
        try:
            key, value = definition.key(), definition.value()
        except ValueError as error:
            raise _unstorable(definition, error) from error
        self._set_aside.define(key, value)

    def _delete(self, key: bytes) -> None:
        if not self._paused:
            self._set_aside.define(key, None)

    def _delete_with_rest(self, key: bytes) -> None:
        """Deletes a definition, after what is set aside and refers to it."""
        self._set_aside.delete(key)
        self._delete(key)


def _unstorable(definition: kinds.Definition, error: ValueError) -> Exception:
    return precondition_failed(f"{definition.description()} can't be kept: {error}")
