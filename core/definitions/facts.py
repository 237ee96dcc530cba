"""Durable facts about messages: delivery counts, deduplication ids, where streams begin.

They are stored among the definitions, so that `store.together()` makes them atomic with messages
and acks. A fact is a key and a value of its owner, a queue or an exchange, and is deleted with it.
A fact that can't be read is ignored: no start fails because of it.

    counts = DeliveryCounts(broker.facts, queue.id)
    counts.keep(sequence, 3)            # inside or outside of store.together()
    counts.drop(sequence)
    counts.load()                       # {sequence: count}, for a queue made from its definition
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import TYPE_CHECKING, NamedTuple

from .fields import Reader, number, text
from .keys import FACTS, Kind, is_fact
from .kinds import VERSION

if TYPE_CHECKING:
    from ..store.port import Store

_OF_QUEUE = b"q"
_OF_EXCHANGE = b"x"


def queue_owner(queue_id: int) -> bytes:
    """The owner of facts about a queue."""
    return _OF_QUEUE + number(queue_id)


def exchange_owner(vhost: str, name: str) -> bytes:
    """The owner of facts about an exchange, which go when it is deleted: names are reused."""
    return _OF_EXCHANGE + text(vhost) + text(name)


class Facts:
    """All facts of a broker, by owner; keeping or dropping one writes one record.

    Only durable queues and exchanges store facts.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._keys: dict[bytes, dict[bytes, None]] = {}

    def keep(self, kind: Kind, owner: bytes, name: bytes, value: bytes) -> int:
        """Stores a fact, replacing one of that name; returns a commit number, nobody has to wait.

        Raises `ValueError` if `kind` is no kind of facts.
        """
        if kind not in FACTS:
            raise ValueError(f"{kind.name} is no kind of facts")
        key = _head(kind, owner) + name
        self._keys.setdefault(owner, {})[key] = None
        return self._store.define(key, VERSION + value)

    def drop(self, kind: Kind, owner: bytes, name: bytes) -> int:
        """Deletes a fact if there is one; returns a commit number, 0 if there was none."""
        key = _head(kind, owner) + name
        keys = self._keys.get(owner)
        if keys is None or key not in keys:
            return 0
        del keys[key]
        if not keys:
            del self._keys[owner]
        return self._store.define(key, None)

    def held(self, kind: Kind, owner: bytes) -> dict[bytes, bytes]:
        """The facts of one owner, by name, in the order in which they were stored first."""
        head, definitions = _head(kind, owner), self._store.definitions
        return {
            key[len(head) :]: definitions[key][len(VERSION) :]
            for key in self._keys.get(owner, ())
            if key.startswith(head) and definitions[key].startswith(VERSION)
        }

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


def _head(kind: Kind, owner: bytes) -> bytes:
    return bytes((kind,)) + len(owner).to_bytes(2, "big") + owner


def _owner(key: bytes) -> bytes | None:
    """The owner in a fact's key; None for a malformed key."""
    end = 3 + int.from_bytes(key[1:3], "big")
    return key[3:end] if len(key) >= end > 3 else None


class DeliveryCounts:
    """How often messages of a queue were delivered and returned, by sequence number."""

    __slots__ = ("_facts", "_owner")

    def __init__(self, facts: Facts, queue_id: int) -> None:
        self._facts = facts
        self._owner = queue_owner(queue_id)

    def keep(self, sequence: int, count: int) -> int:
        return self._facts.keep(Kind.DELIVERY_COUNT, self._owner, number(sequence), number(count))

    def drop(self, sequence: int) -> int:
        """Deletes the count of a message that has left the queue."""
        return self._facts.drop(Kind.DELIVERY_COUNT, self._owner, number(sequence))

    def load(self) -> dict[int, int]:
        return dict(self._read())

    def _read(self) -> Iterator[tuple[int, int]]:
        for name, value in self._facts.held(Kind.DELIVERY_COUNT, self._owner).items():
            if len(name) == len(value) == 8:
                yield Reader(name).number(), Reader(value).number()


class StreamStart:
    """The offset of a stream's oldest message, after retention has dropped older ones."""

    __slots__ = ("_facts", "_owner")

    def __init__(self, facts: Facts, queue_id: int) -> None:
        self._facts = facts
        self._owner = queue_owner(queue_id)

    def keep(self, offset: int) -> int:
        return self._facts.keep(Kind.STREAM_START, self._owner, b"", number(offset))

    def load(self) -> int:
        """The offset; 0 if nothing was dropped."""
        value = self._facts.held(Kind.STREAM_START, self._owner).get(b"", b"")
        return Reader(value).number() if len(value) == 8 else 0


class Seen(NamedTuple):
    """When an id was seen, and when it may come again (0: never), in steady time."""

    came_ms: int
    expires_ms: int


class DeduplicationIds:
    """Which ids an owner (`queue_owner`, `exchange_owner`) has seen, oldest first."""

    __slots__ = ("_facts", "_owner")

    def __init__(self, facts: Facts, owner: bytes) -> None:
        self._facts = facts
        self._owner = owner

    def keep(self, identity: bytes, seen: Seen) -> int:
        """Stores an id; one stored again keeps its position in the order, unless dropped first."""
        value = number(seen.came_ms) + number(seen.expires_ms)
        return self._facts.keep(Kind.DEDUPLICATION, self._owner, identity, value)

    def drop(self, identity: bytes) -> int:
        return self._facts.drop(Kind.DEDUPLICATION, self._owner, identity)

    def load(self) -> dict[bytes, Seen]:
        held = self._facts.held(Kind.DEDUPLICATION, self._owner)
        return {name: _seen(value) for name, value in held.items() if len(value) == 16}


def _seen(value: bytes) -> Seen:
    read = Reader(value)
    return Seen(read.number(), read.number())
