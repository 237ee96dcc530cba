"""What was asked of a store and what of that it confirmed: judges what a recovery finds.

A commit number is true once `committed` has reached it. What is confirmed must be found; what
was asked and not confirmed may be found or not, a group as a whole; nothing else may be there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

NEVER = 2**62
"""The commit number of what is under way."""
Message = tuple[int, int]
"""Queue id and sequence number."""


@dataclass(frozen=True)
class Found:
    """The result of a recovery: definitions, and each queue's messages in order."""

    definitions: Mapping[bytes, bytes]
    messages: Mapping[int, tuple[tuple[int, bytes], ...]]


@dataclass
class Fact:
    """A message: its body, the commit numbers of its publish and of its end."""

    body: bytes
    published: int = NEVER
    settled: int | None = None


@dataclass
class Group:
    """An atomic group: messages added, messages settled, a key with its value."""

    come: list[Message] = field(default_factory=list)
    gone: list[Message] = field(default_factory=list)
    key: bytes = b""
    value: bytes = b""


@dataclass
class History:
    """`committed` is the store's; a new life of the store begins with `observe`."""

    committed: int = 0
    facts: dict[Message, Fact] = field(default_factory=dict)
    values: dict[bytes, list[tuple[int, bytes | None]]] = field(default_factory=dict)
    groups: list[Group] = field(default_factory=list)

    # -- what is asked

    def publish(self, message: Message, body: bytes) -> Fact:
        fact = self.facts[message] = Fact(body)
        return fact

    def settle(self, messages: Iterable[Message], number: int) -> None:
        for message in messages:
            self.facts[message].settled = number

    def define(self, key: bytes, value: bytes | None, number: int) -> None:
        self.values.setdefault(key, [(0, None)]).append((number, value))

    def end_life(self) -> None:
        """Forgets the commit numbers, which the next process uses anew."""
        for fact in self.facts.values():
            fact.published = self._settled_number(fact.published)
            if fact.settled is not None:
                fact.settled = self._settled_number(fact.settled)
        for key, history in self.values.items():
            self.values[key] = [(self._settled_number(n), value) for n, value in history]
        self.committed = 0

    def _settled_number(self, number: int) -> int:
        return 0 if number <= self.committed else NEVER

    def observe(self, found: Found) -> None:
        """Takes the messages found as the state, which may not change any more."""
        self.facts = {
            (queue_id, number): Fact(body, 0)
            for queue_id, messages in found.messages.items()
            for number, body in messages
        }
        self.values = {key: [(0, value)] for key, value in found.definitions.items()}
        self.groups.clear()

    # -- the judgement

    def faults(self, found: Found) -> list[str]:
        """Returns what is wrong with a recovery; empty if nothing is."""
        there = {
            (queue_id, number): body
            for queue_id, messages in found.messages.items()
            for number, body in messages
        }
        return [
            *self._wrong_messages(there),
            *self._wrong_order(found),
            *self._wrong_definitions(found.definitions),
            *self._wrong_groups(there, found),
        ]

    def _wrong_messages(self, there: Mapping[Message, bytes]) -> Iterable[str]:
        for message, fact in self.facts.items():
            is_due = fact.published <= self.committed and fact.settled is None
            if is_due and message not in there:
                yield f"lost: {message} was confirmed"
        for message, body in there.items():
            known = self.facts.get(message)
            if known is None or known.body != body:
                yield f"unexpected: {message} is {body!r}"
            elif known.settled is not None and known.settled <= self.committed:
                yield f"back: {message} was settled, and that was committed"

    def _wrong_order(self, found: Found) -> Iterable[str]:
        for queue_id, messages in found.messages.items():
            numbers = [number for number, _ in messages]
            if numbers != sorted(set(numbers)):
                yield f"order: queue {queue_id} has {numbers}"

    def _wrong_definitions(self, found: Mapping[bytes, bytes]) -> Iterable[str]:
        for key, history in self.values.items():
            sure = max(at for at, (number, _) in enumerate(history) if number <= self.committed)
            allowed = [value for _, value in history[sure:]]
            if found.get(key) not in allowed:
                yield f"definition: {key!r} is {found.get(key)!r}, not one of {allowed}"
        yield from (f"definition: {key!r} is unexpected" for key in found.keys() - self.values)

    def _wrong_groups(self, there: Mapping[Message, bytes], found: Found) -> Iterable[str]:
        """Returns the groups that were not recovered as a whole; messages of a queue without a
        definition, or that was dropped, do not count."""
        for group in self.groups:
            come = [held for held in group.come if held[0] in found.messages]
            gone = [held for held in group.gone if held[0] in found.messages]
            signs = {held in there for held in come if self._stays(held)}
            signs |= {held not in there for held in gone if self._was_there(held)}
            if group.key:
                signs.add(found.definitions.get(group.key) == group.value)
            if len(signs) > 1:
                yield f"half a group: {group}"

    def _was_there(self, message: Message) -> bool:
        return self.facts[message].published <= self.committed

    def _stays(self, message: Message) -> bool:
        return self.facts[message].settled is None
