"""Definitions that are kept and not in force, because they or what they refer to were damaged.

They are tried again at each start. One ends when what it refers to is deleted, as if it had been in
force: else a later queue of that name would get the bindings of a former one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from .decode import BadDefinition, decode
from .keys import exchange_key, queue_key, vhost_key
from .kinds import BindingDefinition, UserDefinition, UserLimitsDefinition, VhostDefinition

if TYPE_CHECKING:
    from ..store.port import Store


class SetAside(Mapping[bytes, str]):
    """What is wrong with each, by key. Whatever is defined goes through `define`, so that what is
    declared anew is not set aside any more."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._reasons: dict[bytes, str] = {}
        self._referring: dict[bytes, dict[bytes, None]] = {}
        """Keys by that of what they refer to, and by their own."""

    def __getitem__(self, key: bytes) -> str:
        return self._reasons[key]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._reasons)

    def __len__(self) -> int:
        return len(self._reasons)

    @property
    def defined(self) -> Mapping[bytes, bytes]:
        """All definitions of the store, in force or not."""
        return self._store.definitions

    def add(self, key: bytes, reason: str) -> None:
        self._reasons[key] = reason
        for referred in (key, *_referred(key, self._store.definitions[key])):
            self._referring.setdefault(referred, {})[key] = None

    def define(self, key: bytes, value: bytes | None) -> int:
        """See `Store.define`."""
        self._reasons.pop(key, None)
        return self._store.define(key, value)

    def end(self, key: bytes) -> None:
        """What is kept under this key is deleted, whether it is in force or not: ends it, if it is
        set aside, and all that refers to it and is."""
        for referring in self._referring.pop(key, ()):
            if referring in self._reasons:
                self.define(referring, None)


def _referred(key: bytes, value: bytes) -> Iterator[bytes]:
    """The keys of what a definition refers to, as far as it can be read."""
    try:
        definition = decode(key, value)
    except BadDefinition:
        return
    if isinstance(definition, BindingDefinition):
        vhost, name = definition.vhost, definition.destination
        yield exchange_key(vhost, definition.source)
        yield exchange_key(vhost, name) if definition.to_exchange else queue_key(vhost, name)
    if not isinstance(definition, UserDefinition | UserLimitsDefinition | VhostDefinition):
        yield vhost_key(definition.vhost)
