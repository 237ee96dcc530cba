"""What a file makes of the definitions that are kept.

Users, virtual hosts and permissions are replaced: what is not in the file goes, if the file has
the section at all. Exchanges, queues and bindings are merged: those in the file are made, or
become as it says, and all others stay, so that no file can take messages away. A queue that is
there keeps its messages. With a virtual host go its exchanges, bindings and permissions, with a
user its permissions; a virtual host that still has queues can't go.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from secrets import randbits
from typing import TypeVar

from msgspec import UNSET

from ...core.auth import Users
from ...core.broker import Broker
from ...core.definitions.decode import BadDefinition, decode
from ...core.definitions.kinds import (
    BindingDefinition,
    Definition,
    PermissionDefinition,
    QueueDefinition,
    UserDefinition,
    VhostDefinition,
    described,
)
from ...core.equivalence import comparable
from ...core.errors import ConfigError
from ...core.store.memory import MemoryStore
from . import entries
from .document import Document

Found = TypeVar("Found", bound=Definition)
Placed = Iterable[tuple[str, Definition]]


def merged(current: Mapping[bytes, bytes], document: Document) -> dict[bytes, bytes | None]:
    """The changes that the file asks for, None for what ends.

    Raises `ConfigError` naming the place in the file, or what is kept, if the outcome would not
    be sound.
    """
    target = _Target(current)
    if document.users is not UNSET:
        target.replace(UserDefinition, entries.users(document.users))
    if document.vhosts is not UNSET:
        target.replace(VhostDefinition, entries.vhosts(document.vhosts))
    target.drop_orphans()
    if document.permissions is not UNSET:
        target.replace(PermissionDefinition, entries.permissions(document.permissions))
    target.add(entries.exchanges(document.exchanges))
    target.add_queues(entries.queues(document.queues))
    target.add_bindings(entries.bindings(document.bindings))
    target.check()
    return target.changes()


class _Target:
    """What is to be kept afterwards."""

    def __init__(self, current: Mapping[bytes, bytes]) -> None:
        self._current = current
        self._wanted = {key: decode(key, current[key]) for key in current}
        self._places: dict[bytes, str] = {}

    def add(self, placed: Placed) -> None:
        """Raises `ConfigError` for what stands in the file twice."""
        for place, definition in placed:
            with entries.at(place):
                key = definition.key()
                if key in self._places:
                    raise ConfigError(f"{described(definition)} stands in {self._places[key]} too")
            self._places[key] = place
            self._wanted[key] = definition

    def replace(self, kind: type[Definition], placed: Placed) -> None:
        before = [key for key, found in self._wanted.items() if isinstance(found, kind)]
        self.add(placed)
        for key in before:
            if key not in self._places:
                del self._wanted[key]

    def add_queues(self, placed: Iterable[tuple[str, QueueDefinition]]) -> None:
        """One that is there keeps its id, and with it its messages."""
        for place, definition in placed:
            found = self._wanted.get(definition.key())
            number = found.id if isinstance(found, QueueDefinition) else _new_id()
            self.add([(place, definition._replace(id=number))])

    def add_bindings(self, placed: Iterable[tuple[str, BindingDefinition]]) -> None:
        """One that is there, if in other bytes, is not made again."""
        there = {_identity(found) for found in self._of(BindingDefinition)}
        for place, definition in placed:
            if _identity(definition) not in there:
                there.add(_identity(definition))
                self.add([(place, definition)])

    def drop_orphans(self) -> None:
        """Takes away what belongs to a virtual host or user that goes."""
        vhosts = {found.name for found in self._of(VhostDefinition)}
        users = {found.name for found in self._of(UserDefinition)}
        for key, found in list(self._wanted.items()):
            if isinstance(found, UserDefinition | VhostDefinition):
                continue
            if found.vhost not in vhosts:
                if isinstance(found, QueueDefinition):
                    raise _still_used(found)
                del self._wanted[key]
            elif isinstance(found, PermissionDefinition) and found.user not in users:
                del self._wanted[key]

    def check(self) -> None:
        """Makes all of it, as the next start will."""
        store = MemoryStore()
        store.definitions = {key: found.value() for key, found in self._wanted.items()}
        try:
            Broker(Users(), store=store).restore()
        except BadDefinition as error:
            place = self._places.get(error.key)
            raise ConfigError(f"{place}: {error}" if place else str(error)) from error

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
    """Above all that a server hands out, which are nanoseconds since 1970 up to the year 2116;
    by chance, so that none is ever used again."""
    return 1 << 62 | randbits(62)


def _still_used(queue: QueueDefinition) -> ConfigError:
    return ConfigError(
        f"vhosts: '{queue.vhost}' is not among them and still has queue '{queue.name}', whose "
        f"messages would be lost; leave it in, or delete its queues while the server runs"
    )
