"""Applies a definitions file to the stored definitions.

Users, virtual hosts, permissions, topic permissions, policies and parameters are replaced: those
missing from the file are deleted, if the file has the section at all. Exchanges, queues and
bindings are merged: those in the file are created or changed, and all others stay, so that no file
can delete messages. An existing queue keeps its messages. Deleting a virtual host deletes its
exchanges, bindings, policies, parameters and permissions; deleting a user deletes its permissions.
A virtual host that still has queues can't be deleted.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from logging import Logger
from secrets import randbits
from typing import TypeVar

from msgspec import UNSET

from ...core.auth import Users
from ...core.broker import Broker
from ...core.definitions import restore
from ...core.definitions.decode import BadDefinition, decode
from ...core.definitions.keys import is_fact
from ...core.definitions.kinds import (
    BindingDefinition,
    Definition,
    GlobalParameterDefinition,
    OperatorPolicyDefinition,
    ParameterDefinition,
    PermissionDefinition,
    PolicyDefinition,
    QueueDefinition,
    TopicPermissionDefinition,
    UserDefinition,
    UserLimitsDefinition,
    VhostDefinition,
    VhostLimitsDefinition,
)
from ...core.errors import ConfigError
from ...core.message.equivalence import comparable
from ...core.store.memory import MemoryStore
from . import entries, governance
from .checks import at
from .document import DefinitionsDocument
from .left_out import LeftOut

Found = TypeVar("Found", bound=Definition)
Kinds = type[Definition] | tuple[type[Definition], ...]
Placed = Iterable[tuple[str, Definition]]


def merged(
    current: Mapping[bytes, bytes], document: DefinitionsDocument, left_out: LeftOut
) -> dict[bytes, bytes | None]:
    """Returns the changed definitions by key, None for deleted ones.

    Raises `ConfigError`, naming the place in the file or the definition, if the result would be
    inconsistent.
    """
    target = MergeTarget(current, left_out)
    _add_rights(target, document)
    if document.policies is not UNSET:
        target.replace(PolicyDefinition, governance.policies(document.policies))
    _add_parameters(target, document)
    if document.global_parameters is not UNSET:
        found = governance.global_parameters(document.global_parameters)
        target.replace(GlobalParameterDefinition, found)
    left_out.transient = entries.made_durable(document)
    target.add(entries.exchanges(document.exchanges))
    target.add_queues(entries.queues(document.queues))
    target.add_bindings(entries.bindings(document.bindings))
    target.check()
    return target.changes()


def _add_rights(target: MergeTarget, document: DefinitionsDocument) -> None:
    if document.users is not UNSET:
        usual = governance.usual_hashing(document.rabbitmq_version or document.rabbit_version)
        target.replace(UserDefinition, governance.users(document.users, usual))
        target.replace(UserLimitsDefinition, governance.user_limits(document.users))
    if document.vhosts is not UNSET:
        target.replace(VhostDefinition, governance.vhosts(document.vhosts))
    target.drop_orphans()
    if document.permissions is not UNSET:
        target.replace(PermissionDefinition, governance.permissions(document.permissions))
    if document.topic_permissions is not UNSET:
        found = governance.topic_permissions(document.topic_permissions)
        target.replace(TopicPermissionDefinition, found)


def _add_parameters(target: MergeTarget, document: DefinitionsDocument) -> None:
    """Adds parameters; limits in the entry of a virtual host apply if no parameter sets others."""
    placed = list(governance.parameters(document.parameters))
    limited = {found.vhost for _, found in placed if isinstance(found, VhostLimitsDefinition)}
    beside = governance.vhost_limits(document.vhosts)
    placed += [(place, found) for place, found in beside if found.vhost not in limited]
    if document.parameters is UNSET:
        target.add(placed)
    else:
        kinds = (OperatorPolicyDefinition, VhostLimitsDefinition, ParameterDefinition)
        target.replace(kinds, placed)


class MergeTarget:
    """The definitions as they will be stored; what can't be held is left out."""

    def __init__(self, current: Mapping[bytes, bytes], left_out: LeftOut) -> None:
        self._left_out = left_out
        self._current = {key: current[key] for key in current if not is_fact(key)}
        self._wanted = {key: decode(key, current[key]) for key in self._current}
        self._places: dict[bytes, str] = {}

    def add(self, placed: Placed) -> None:
        """Adds definitions; raises `ConfigError` for one that is in the file twice."""
        for place, definition in self._left_out.sift(placed):
            self._put(place, definition)

    def _put(self, place: str, definition: Definition) -> None:
        with at(place):
            key = definition.key()
            if key in self._places:
                raise ConfigError(f"{definition.description()} stands in {self._places[key]} too")
            definition.value()
        self._places[key] = place
        self._wanted[key] = definition

    def replace(self, kind: Kinds, placed: Placed) -> None:
        """Replaces all definitions of these kinds."""
        before = [key for key, found in self._wanted.items() if isinstance(found, kind)]
        self.add(placed)
        for key in before:
            if key not in self._places:
                del self._wanted[key]

    def add_queues(self, placed: Iterable[tuple[str, QueueDefinition]]) -> None:
        """Adds queues; an existing one keeps its id, and with it its messages."""
        for place, definition in self._left_out.sift(placed):
            assert isinstance(definition, QueueDefinition)
            found = self._wanted.get(definition.key())
            number = found.id if isinstance(found, QueueDefinition) else _new_id()
            self._put(place, definition._replace(id=number))

    def add_bindings(self, placed: Iterable[tuple[str, BindingDefinition]]) -> None:
        """Adds bindings, except those that exist with equivalent arguments."""
        there = {_identity(found) for found in self._of(BindingDefinition)}
        for place, definition in self._left_out.sift(placed):
            assert isinstance(definition, BindingDefinition)
            if _identity(definition) not in there:
                there.add(_identity(definition))
                self._put(place, definition)

    def drop_orphans(self) -> None:
        """Deletes what belongs to a deleted virtual host or user."""
        vhosts = {found.name for found in self._of(VhostDefinition)}
        users = {found.name for found in self._of(UserDefinition)}
        for key, found in list(self._wanted.items()):
            vhost, user = getattr(found, "vhost", None), getattr(found, "user", None)
            if vhost is not None and vhost not in vhosts:
                if isinstance(found, QueueDefinition):
                    raise _still_used(found)
                del self._wanted[key]
            elif user is not None and user not in users:
                del self._wanted[key]

    def check(self) -> None:
        """Restores the definitions on trial, as the next start will. Raises `ConfigError`."""
        try:
            after = _set_aside({key: found.value() for key, found in self._wanted.items()})
        except BadDefinition as error:
            place = self._places.get(error.key)
            raise ConfigError(f"{place}: {error}" if place else str(error)) from error
        before = _set_aside(self._current) if after else {}
        for key, complaint in after.items():
            if key in self._places:
                raise ConfigError(f"{self._places[key]}: {complaint}")
            if key not in before:  # existing damage must not prevent an import that repairs it
                raise ConfigError(complaint)

    def changes(self) -> dict[bytes, bytes | None]:
        changes: dict[bytes, bytes | None]
        changes = {key: None for key in self._current if key not in self._wanted}
        for key, found in self._wanted.items():
            value = found.value()
            if self._current.get(key) != value:
                changes[key] = value
        return changes

    def _of(self, kind: type[Found]) -> list[Found]:
        return [found for found in self._wanted.values() if isinstance(found, kind)]


def _identity(found: BindingDefinition) -> Hashable:
    return (*found[:-1], comparable(found.arguments))


def _new_id() -> int:
    """Returns a random id above those that a server assigns, which are nanoseconds since 1970 until
    the year 2116; random, so that none is used again."""
    return 1 << 62 | randbits(62)


def _still_used(queue: QueueDefinition) -> ConfigError:
    return ConfigError(
        f"vhosts: '{queue.vhost}' is not among them and still has queue {queue.name!r}, whose "
        f"messages would be lost; leave it in, or delete its queues while the server runs"
    )


def _set_aside(definitions: Mapping[bytes, bytes]) -> Mapping[bytes, str]:
    """Returns the reason by key for each definition that a start could not apply.

    Raises `BadDefinition` for one that can't be decoded.
    """
    store = MemoryStore()
    store.definitions = dict(definitions)
    broker = Broker(Users(), store=store)
    with _unlogged(restore.logger):
        broker.restore()
    return broker.set_aside


@contextmanager
def _unlogged(logger: Logger) -> Iterator[None]:
    """Logs nothing of a trial: what is not applied there is an error to whoever imports it."""
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before
