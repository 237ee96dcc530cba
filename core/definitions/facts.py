"""Durable facts about messages: delivery counts, deduplication ids, where streams begin, which
queues are paused; `committed.py` has those about transactions.

They are stored among the definitions, so that `store.together()` makes them atomic with messages
and acks. A fact is a key and a value of its owner, a queue, an exchange or a virtual host, and is
deleted with it. A fact that can't be read is ignored: no start fails because of it.

    counts = DeliveryCounts(broker.facts, queue.id)
    counts.store(sequence, 3)           # inside or outside of store.together()
    counts.drop(sequence)
    counts.load()                       # {sequence: count}, for a queue made from its definition
"""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING, Final, NamedTuple

from .fields import VERSION, FieldReader, number, text
from .keys import FACTS, DefinitionKind, is_fact

if TYPE_CHECKING:
    from ..store.port import Store

_OF_QUEUE: Final = b"q"
_OF_EXCHANGE: Final = b"x"
_OF_VHOST: Final = b"v"


def queue_owner(queue_id: int) -> bytes:
    """Returns the owner of facts about a queue."""
    return _OF_QUEUE + number(queue_id)


def exchange_owner(vhost: str, name: str) -> bytes:
    """Returns the owner of facts about an exchange; they are deleted with it, since names are
    reused."""
    return _OF_EXCHANGE + text(vhost) + text(name)


def vhost_owner(vhost: str) -> bytes:
    """Returns the owner of facts about a virtual host."""
    return _OF_VHOST + text(vhost)


class Facts:
    """All facts of a broker, by owner; storing or dropping one writes one record.

    Only durable queues and exchanges store facts.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._keys: dict[bytes, dict[bytes, None]] = {}

    def store(self, kind: DefinitionKind, owner: bytes, name: bytes, value: bytes) -> int:
        """Stores a fact, replacing one of that name; returns a commit number, nobody has to wait.

        Raises `ValueError` if `kind` is no kind of facts.
        """
        if kind not in FACTS:
            raise ValueError(f"{kind.name} is no kind of facts")
        key = _head(kind, owner) + name
        self._keys.setdefault(owner, {})[key] = None
        return self._store.define(key, VERSION + value)

    def drop(self, kind: DefinitionKind, owner: bytes, name: bytes) -> int:
        """Deletes a fact if there is one; returns a commit number, 0 if there was none."""
        key = _head(kind, owner) + name
        keys = self._keys.get(owner)
        if keys is None or key not in keys:
            return 0
        del keys[key]
        if not keys:
            del self._keys[owner]
        return self._store.define(key, None)

    def stored(self, kind: DefinitionKind, owner: bytes) -> dict[bytes, bytes]:
        """Returns the facts of one owner, by name, in the order in which they were stored first."""
        head, definitions = _head(kind, owner), self._store.definitions
        return {
            key[len(head) :]: definitions[key][len(VERSION) :]
            for key in self._keys.get(owner, ())
            if key.startswith(head) and definitions[key].startswith(VERSION)
        }

    def value(self, kind: DefinitionKind, owner: bytes, name: bytes) -> bytes | None:
        """Returns the value of one fact, None if there is none that can be read."""
        value = self._store.definitions.get(_head(kind, owner) + name, b"")
        return value[len(VERSION) :] if value.startswith(VERSION) else None

    def owners(self, kind: DefinitionKind) -> set[bytes]:
        """Returns the owners of a fact of this kind without a name."""
        definitions = self._store.definitions
        return {owner for owner in self._keys if _head(kind, owner) in definitions}

    def end(self, owner: bytes) -> None:
        """Deletes all facts of an owner."""
        for key in self._keys.pop(owner, ()):
            self._store.define(key, None)

    def collect(self) -> None:
        """Indexes the facts in the store by owner."""
        self._keys.clear()
        for key in self._store.definitions:
            owner = _owner(key) if is_fact(key) else None
            if owner is not None:
                self._keys.setdefault(owner, {})[key] = None

    def end_orphans(self, owners: Container[bytes]) -> None:
        """Deletes all facts whose owner is not among these."""
        for owner in [owner for owner in self._keys if owner not in owners]:
            self.end(owner)


def _head(kind: DefinitionKind, owner: bytes) -> bytes:
    return bytes((kind,)) + len(owner).to_bytes(2, "big") + owner


def _owner(key: bytes) -> bytes | None:
    """Returns the owner in a fact's key; None for a malformed key."""
    end = 3 + int.from_bytes(key[1:3], "big")
    return key[3:end] if len(key) >= end > 3 else None


class DeliveryCounts:
    """The delivery and return counts of a queue's messages, by sequence number."""

    __slots__ = ("_facts", "_owner")

    def __init__(self, facts: Facts, queue_id: int) -> None:
        self._facts = facts
        self._owner = queue_owner(queue_id)

    def store(self, sequence: int, count: int) -> int:
        return self._facts.store(
            DefinitionKind.DELIVERY_COUNT, self._owner, number(sequence), number(count)
        )

    def drop(self, sequence: int) -> int:
        """Deletes the count of a message that has left the queue."""
        return self._facts.drop(DefinitionKind.DELIVERY_COUNT, self._owner, number(sequence))

    def load(self) -> dict[int, int]:
        stored = self._facts.stored(DefinitionKind.DELIVERY_COUNT, self._owner)
        return {
            FieldReader(name).number(): FieldReader(value).number()
            for name, value in stored.items()
            if len(name) == len(value) == 8
        }


class StreamStart:
    """The offset of a stream's oldest message, after retention has dropped older ones."""

    __slots__ = ("_facts", "_owner")

    def __init__(self, facts: Facts, queue_id: int) -> None:
        self._facts = facts
        self._owner = queue_owner(queue_id)

    def store(self, offset: int) -> int:
        return self._facts.store(DefinitionKind.STREAM_START, self._owner, b"", number(offset))

    def load(self) -> int:
        """Returns the offset; 0 if nothing was dropped."""
        value = self._facts.stored(DefinitionKind.STREAM_START, self._owner).get(b"", b"")
        return FieldReader(value).number() if len(value) == 8 else 0


class PausedMark:
    """The mark of a paused queue."""

    __slots__ = ("_facts", "_owner")

    def __init__(self, facts: Facts, queue_id: int) -> None:
        self._facts = facts
        self._owner = queue_owner(queue_id)

    def store(self) -> int:
        return self._facts.store(DefinitionKind.PAUSED, self._owner, b"", b"")

    def drop(self) -> int:
        return self._facts.drop(DefinitionKind.PAUSED, self._owner, b"")


class SeenId(NamedTuple):
    """The steady times when an id was seen, and from which on it may come again (0: never)."""

    came_ms: int
    expires_ms: int


class DeduplicationIds:
    """The ids that an owner (`queue_owner`, `exchange_owner`) has seen, oldest first."""

    __slots__ = ("_facts", "_owner")

    def __init__(self, facts: Facts, owner: bytes) -> None:
        self._facts = facts
        self._owner = owner

    def store(self, identity: bytes, seen: SeenId) -> int:
        """Stores an id; one stored again keeps its position in the order, unless dropped first."""
        value = number(seen.came_ms) + number(seen.expires_ms)
        return self._facts.store(DefinitionKind.DEDUPLICATION, self._owner, identity, value)

    def drop(self, identity: bytes) -> int:
        return self._facts.drop(DefinitionKind.DEDUPLICATION, self._owner, identity)

    def load(self) -> dict[bytes, SeenId]:
        stored = self._facts.stored(DefinitionKind.DEDUPLICATION, self._owner)
        return {name: _seen(value) for name, value in stored.items() if len(value) == 16}


def _seen(value: bytes) -> SeenId:
    read = FieldReader(value)
    return SeenId(read.number(), read.number())
