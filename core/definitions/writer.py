"""Writes definitions to the store; nothing here waits for the disk.

Definitions are deleted in an order that never leaves one without what it refers to, wherever a
crash cuts the log.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..auth import Permissions, User
from ..auth.errors import no_vhost
from ..errors import precondition_failed
from ..queue.queue import Queue
from ..route.exchange import Exchange
from . import keys, kinds
from .facts import exchange_owner, queue_owner

if TYPE_CHECKING:
    from ..message.model import Table
    from ..route.binding import Binding
    from .facts import Facts
    from .set_aside import SetAside


class DefinitionWriter:
    """Writes the definitions of one virtual host."""

    __slots__ = ("_facts", "_paused", "_set_aside", "_vhost")

    def __init__(self, set_aside: SetAside, vhost: str, facts: Facts) -> None:
        self._set_aside = set_aside
        self._vhost = vhost
        self._facts = facts
        self._paused = False

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Writes nothing inside: what is declared there comes from the store."""
        self._paused = True
        try:
            yield
        finally:
            self._paused = False

    def keep_vhost(self, properties: Table | None = None) -> None:
        """Stores the virtual host with these properties, replacing those before."""
        self._define(kinds.VhostDefinition(self._vhost, properties or {}))

    def keep_limits(self, limits: Table) -> None:
        """Stores all limits, replacing those before; an empty table deletes them."""
        if limits:
            self._define(kinds.VhostLimitsDefinition(self._vhost, limits))
        else:
            self._end(keys.vhost_limits_key(self._vhost))

    def end_vhost(self) -> None:
        """Deletes the virtual host, after all that is in it and permissions for it."""
        self.keep_limits({})
        self._end_with_rest(keys.vhost_key(self._vhost))

    def keep_policy(
        self, definition: kinds.PolicyDefinition | kinds.OperatorPolicyDefinition
    ) -> None:
        self._define(definition)

    def end_policy(
        self, definition: kinds.PolicyDefinition | kinds.OperatorPolicyDefinition
    ) -> None:
        self._end(definition.key())

    def keep_exchange(self, exchange: Exchange) -> None:
        """Raises `ChannelError` 406 for arguments that can't be kept."""
        if exchange.durable:
            self._define(
                kinds.ExchangeDefinition(
                    self._vhost, exchange.name, exchange.type_name, exchange.auto_delete,
                    exchange.internal, exchange.arguments,
                )
            )  # fmt: skip

    def end_exchange(self, exchange: Exchange) -> None:
        """Deletes an exchange, after its bindings."""
        if exchange.durable:
            self._facts.end(exchange_owner(self._vhost, exchange.name))
            self._end_with_rest(keys.exchange_key(self._vhost, exchange.name))

    def end_lost_exchange(self, name: str) -> None:
        """Deletes what is set aside of an exchange that does not exist."""
        self._set_aside.end(keys.exchange_key(self._vhost, name))

    def keep_queue(self, queue: Queue) -> None:
        """Raises `ChannelError` 406 for arguments that can't be kept."""
        if queue.durable:
            self._define(
                kinds.QueueDefinition(
                    self._vhost, queue.name, queue.id, queue.auto_delete, queue.arguments
                )
            )

    def end_queue(self, queue: Queue) -> None:
        """Deletes a queue, after its bindings and messages."""
        if queue.durable:
            self._facts.end(queue_owner(queue.id))
            self._end_with_rest(keys.queue_key(self._vhost, queue.name))

    def end_lost_queue(self, name: str) -> None:
        """Deletes what is set aside of a queue that does not exist; its messages stay in
        quarantine."""
        self._set_aside.end(keys.queue_key(self._vhost, name))

    # -- bindings; implements `BindingStorage`

    def binding_key(self, source: Exchange, binding: Binding) -> bytes | None:
        """The key of a binding; None if one of its ends is not durable.

        Raises `ChannelError` 406 for arguments that can't be stored.
        """
        destination = binding.destination
        assert isinstance(destination, Queue | Exchange)
        if self._paused or not (source.durable and destination.durable):
            return None
        definition = kinds.BindingDefinition(
            self._vhost, source.name, isinstance(destination, Exchange), destination.name,
            binding.routing_key, binding.arguments,
        )  # fmt: skip
        try:
            return definition.key()
        except ValueError as error:
            raise _unkeepable(definition, error) from error

    def bound(self, key: bytes) -> None:
        self._set_aside.define(key, kinds.VERSION)

    def unbound(self, source: Exchange, binding: Binding) -> None:
        key = self.binding_key(source, binding)
        if key is not None:
            self._set_aside.define(key, None)

    def end_lost_binding(self, source: Exchange, binding: Binding) -> None:
        """Deletes a binding that is set aside, where none exists."""
        key = self.binding_key(source, binding)
        if key is not None:
            self._set_aside.end(key)

    def _define(self, definition: kinds.Definition) -> None:
        if self._paused:
            return
        try:
            key, value = definition.key(), definition.value()
        except ValueError as error:
            raise _unkeepable(definition, error) from error
        self._set_aside.define(key, value)

    def _end(self, key: bytes) -> None:
        if not self._paused:
            self._set_aside.define(key, None)

    def _end_with_rest(self, key: bytes) -> None:
        """Deletes a definition, after what is set aside and refers to it."""
        self._set_aside.end(key)
        self._end(key)


def _unkeepable(definition: kinds.Definition, error: ValueError) -> Exception:
    return precondition_failed(f"{kinds.described(definition)} can't be kept: {error}")


class UserWriter:
    """Writes users and permissions; each call returns the commit number to wait for."""

    def __init__(self, set_aside: SetAside, vhosts: Collection[str]) -> None:
        self._set_aside = set_aside
        self._vhosts = vhosts

    def keep_user(self, user: User, password_hash: str) -> int:
        tags = tuple(sorted(user.tags))
        definition = kinds.UserDefinition(user.name, password_hash, tags)
        return self._set_aside.define(definition.key(), definition.value())

    def end_user(self, user: User) -> int:
        heads = keys.of_user(user.name)
        for key in [key for key in self._set_aside.defined if key.startswith(heads)]:
            self._set_aside.define(key, None)
        return self._set_aside.define(keys.user_key(user.name), None)

    def keep_permissions(self, user: User, vhost: str, permissions: Permissions) -> int:
        """Raises `AuthError` if there is no such virtual host."""
        self._refuse_unknown(vhost)
        definition = kinds.PermissionDefinition(
            user.name, vhost, permissions.configure, permissions.write, permissions.read
        )
        return self._set_aside.define(definition.key(), definition.value())

    def end_permissions(self, user: User, vhost: str) -> int:
        return self._set_aside.define(keys.permission_key(user.name, vhost), None)

    def keep_topic_permission(
        self, user: User, vhost: str, exchange: str, write: str, read: str
    ) -> int:
        """Raises `AuthError` if there is no such virtual host."""
        self._refuse_unknown(vhost)
        found = kinds.TopicPermissionDefinition(user.name, vhost, exchange, write, read)
        return self._set_aside.define(found.key(), found.value())

    def end_topic_permission(self, user: User, vhost: str, exchange: str) -> int:
        return self._set_aside.define(keys.topic_permission_key(user.name, vhost, exchange), None)

    def keep_user_limits(self, user: User, limits: Mapping[str, int]) -> int:
        """Stores all limits, replacing those before; an empty table deletes them."""
        found = kinds.UserLimitsDefinition(user.name, dict(limits))
        return self._set_aside.define(found.key(), found.value() if limits else None)

    def _refuse_unknown(self, vhost: str) -> None:
        if vhost not in self._vhosts:
            raise no_vhost(vhost)
