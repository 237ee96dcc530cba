"""Definitions set aside: stored but not applied, since they or what they refer to were damaged.

They are tried again at each start. One is deleted with what it refers to, as if it had been
applied: else a later queue of that name would get the bindings of a former one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from .decode import BadDefinition, decode
from .keys import DefinitionKind, key_of
from .kinds import (
    BindingDefinition,
    GlobalParameterDefinition,
    UserDefinition,
    UserLimitsDefinition,
    VhostDefinition,
)

if TYPE_CHECKING:
    from ..store.port import Store


_OF_THE_SERVER: Final = (
    GlobalParameterDefinition,
    UserDefinition,
    UserLimitsDefinition,
    VhostDefinition,
)
"""Definitions that are in no virtual host."""


class UnappliedDefinitions(Mapping[bytes, str]):
    """The reasons why definitions are set aside, by key. All definitions are stored by `define`, so
    that one that is declared again is not set aside any more.

    `on_change` is called after each change: only a turn lets the store write it, and what is
    declared over HTTP has none of its own.
    """

    def __init__(self, store: Store, on_change: Callable[[], None]) -> None:
        self._store = store
        self._on_change = on_change
        self._reasons: dict[bytes, str] = {}
        self._referring: dict[bytes, dict[bytes, None]] = {}
        """Keys of definitions, by the keys that they refer to and by their own."""

    def __getitem__(self, key: bytes) -> str:
        return self._reasons[key]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._reasons)

    def __len__(self) -> int:
        return len(self._reasons)

    @property
    def defined(self) -> Mapping[bytes, bytes]:
        """All definitions of the store, applied or not."""
        return self._store.definitions

    def add(self, key: bytes, reason: str) -> None:
        self._reasons[key] = reason
        for referred in (key, *_referred(key, self._store.definitions[key])):
            self._referring.setdefault(referred, {})[key] = None

    def define(self, key: bytes, value: bytes | None) -> int:
        """Stores or deletes a definition, see `Store.define`."""
        self._reasons.pop(key, None)
        commit = self._store.define(key, value)
        self._on_change()
        return commit

    def delete(self, key: bytes) -> None:
        """Deletes what is set aside under this key, and what is set aside and refers to it; called
        when the object of that key is deleted."""
        for referring in self._referring.pop(key, ()):
            if referring in self._reasons:
                self.define(referring, None)


def _referred(key: bytes, value: bytes) -> Iterator[bytes]:
    """Yields the keys that a definition refers to, as far as it can be decoded."""
    try:
        definition = decode(key, value)
    except BadDefinition:
        return
    if isinstance(definition, BindingDefinition):
        vhost, name = definition.vhost, definition.destination
        yield key_of(DefinitionKind.EXCHANGE, vhost, definition.source)
        yield key_of(
            DefinitionKind.EXCHANGE if definition.to_exchange else DefinitionKind.QUEUE, vhost, name
        )
    if not isinstance(definition, _OF_THE_SERVER):
        yield key_of(DefinitionKind.VHOST, definition.vhost)
