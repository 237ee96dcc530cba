"""Bindings, and the container that indexes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, KeysView
from typing import Generic, TypeVar

from ..message.equivalence import comparable
from ..message.model import Table
from .route import Destination

Key = TypeVar("Key")


class Binding:
    """A binding to a destination; equal to one with the same destination, key and arguments."""

    __slots__ = ("arguments", "destination", "routing_key")

    def __init__(self, destination: Destination, routing_key: str, arguments: Table) -> None:
        self.destination = destination
        self.routing_key = routing_key
        self.arguments = arguments

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, Binding)
            and self.destination is other.destination
            and self.routing_key == other.routing_key
            and comparable(self.arguments) == comparable(other.arguments)
        )

    def __hash__(self) -> int:
        if not self.arguments:
            return hash((self.destination, self.routing_key))
        return hash((self.destination, self.routing_key, comparable(self.arguments)))


class GroupedBindings(Generic[Key]):
    """Bindings grouped by a key, each group in the order of binding; all calls are O(1).

    A group of one is stored without a dictionary, which saves 232 bytes: most keys and most queues
    have one binding.
    """

    __slots__ = ("_groups",)

    def __init__(self) -> None:
        self._groups: dict[Key, Binding | dict[Binding, Binding]] = {}

    def __contains__(self, key: Key) -> bool:
        return key in self._groups

    def __iter__(self) -> Iterator[Binding]:
        for key in self._groups:
            yield from self.group(key)

    def keys(self) -> KeysView[Key]:
        return self._groups.keys()

    def group(self, key: Key) -> Iterable[Binding]:
        group = self._groups.get(key, ())
        return (group,) if isinstance(group, Binding) else group

    def destinations(self, key: Key) -> Iterable[Destination]:
        """Returns the destinations of a group, one for each binding."""
        group = self._groups.get(key)
        if group is None:
            return ()
        if isinstance(group, Binding):
            return (group.destination,)
        return [binding.destination for binding in group]

    def has(self, key: Key, binding: Binding) -> bool:
        """Returns whether the group has an equal binding."""
        group = self._groups.get(key)
        return group == binding if isinstance(group, Binding) else binding in (group or ())

    def add(self, key: Key, binding: Binding) -> bool:
        """Adds a binding; False if the group has an equal one already, which stays."""
        group = self._groups.setdefault(key, binding)
        if group is binding:
            return True
        if isinstance(group, Binding):
            if group == binding:
                return False
            group = self._groups[key] = {group: group}
        count = len(group)
        group.setdefault(binding, binding)
        return len(group) > count

    def discard(self, key: Key, binding: Binding) -> Binding | None:
        """Removes and returns the binding that equals this one; None if there is none."""
        group = self._groups.get(key)
        if isinstance(group, dict):
            found = group.pop(binding, None)
            if len(group) == 1:
                self._groups[key] = next(iter(group))
            return found
        if group is None or group != binding:
            return None
        del self._groups[key]
        return group
