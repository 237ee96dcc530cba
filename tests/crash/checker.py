"""The queue checker (Jepsen's total-queue), in a few octets for each message and queue.

    checker = Checker()
    journal = checker.publisher("orders", [Route("q")])
    checker.delivered("q", consumer=1, messages=[Arrival(journal.publisher, 0, False)])
    checker.consumed("q", [(journal.publisher, 0)])
    checker.drained("q", 0)
    assert checker.verdict().valid

With A attempted, K confirmed and D consumed, in each queue: lost = K-D, unexpected = D not in A,
duplicated = consumed again, recovered = consumed but not confirmed. Beyond Jepsen: what comes
again is flagged as redelivered or was sent or moved again, first deliveries keep their
publisher's order, of a transaction all or nothing is left after a crash, and all queues end empty.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from .journal import CONFIRMED, WITHDRAWN, Journal, Route
from .verdict import Verdict

SEEN, CONSUMED, RECOVERED = 1, 2, 4
"""Marks of a message in a queue; recovered: it came out in a later life than it went in."""
EXAMPLES = 5
_IS_CONSUMED = bytes(1 if mark & CONSUMED else 0 for mark in range(256))
_IS_CONFIRMED = bytes(1 if fate == CONFIRMED else 0 for fate in range(256))


class Arrival(NamedTuple):
    publisher: int
    number: int
    redelivered: bool


class Inflow:
    """One publisher's messages in one queue."""

    def __init__(self, journal: Journal, route: Route) -> None:
        self.journal = journal
        self.route = route
        self.marks = bytearray()
        self.newest: dict[int, int] = {}
        """The highest number that came first to each consumer."""

    def mark(self, number: int, mark: int) -> int:
        """Sets a mark; gives those that were there."""
        if number >= len(self.marks):
            self.marks.extend(bytes(self.journal.attempted - len(self.marks)))
        before = self.marks[number]
        self.marks[number] = before | mark
        return before

    def lost(self) -> Iterator[int]:
        """Confirmed, but not consumed."""
        if self.route.may_vanish:
            return
        attempted = self.journal.attempted
        fates = self.journal.fates[:attempted].translate(_IS_CONFIRMED)
        marks = self.marks.translate(_IS_CONSUMED).ljust(attempted, b"\0")
        for rest in self.route.rests:
            yield from _in_first_only(fates, marks, rest, self.route.every)

    def recovered(self) -> int:
        """Consumed, but not confirmed."""
        size = len(self.marks)
        fates = self.journal.fates[:size].translate(_IS_CONFIRMED)
        marks = self.marks.translate(_IS_CONSUMED)
        return sum(1 for _ in _in_first_only(marks, fates, 0, 1))


def _in_first_only(
    one: bytes | bytearray, other: bytes | bytearray, rest: int, every: int
) -> Iterator[int]:
    """The indexes with a 1 in one and a 0 in the other."""
    some, others = one[rest::every], other[rest::every]
    left = int.from_bytes(some, "little") & ~int.from_bytes(others, "little")
    found = left.to_bytes(len(some), "little")
    at = found.find(b"\x01")
    while at >= 0:
        yield rest + at * every
        at = found.find(b"\x01", at + 1)


class Inbox:
    """What came out of one queue. It is `strict` about order when it has one consumer at a time
    and its consumer returns nothing to it: then each first arrival is newer than those before,
    flagged or not. `order` off says nothing about it at all."""

    def __init__(self, name: str, *, order: bool, strict: bool) -> None:
        self.name = name
        self.order = order
        self.strict = strict
        self.inflows: dict[int, Inflow] = {}
        self.remaining: int | None = None
        self.lock = threading.Lock()


class Checker:
    """Publishers and consumers may tell it what happens from any thread."""

    def __init__(self) -> None:
        self.journals: list[Journal] = []
        self.inboxes: dict[str, Inbox] = {}
        self._broken: Counter[str] = Counter()
        self._told: Counter[tuple[str, str]] = Counter()
        self._examples: list[str] = []
        self.arrivals = 0

    def queue(self, name: str, *, order: bool = True, strict: bool = False) -> None:
        self.inboxes[name] = Inbox(name, order=order, strict=strict)

    def publisher(self, name: str, routes: Sequence[Route]) -> Journal:
        """Gives the journal of a new publisher; its queues are made if they are not known."""
        journal = Journal(len(self.journals), name, routes)
        self.journals.append(journal)
        for route in routes:
            if route.queue not in self.inboxes:
                self.queue(route.queue)
            self.inboxes[route.queue].inflows[journal.publisher] = Inflow(journal, route)
        return journal

    def breaks(self, rule: str, what: str, where: str = "") -> None:
        """Counts a violation and keeps the first few of each place as examples."""
        self._broken[rule] += 1
        self._example(rule, what, where)

    def _example(self, rule: str, what: str, where: str) -> None:
        self._told[rule, where] += 1
        if self._told[rule, where] <= EXAMPLES:
            self._examples.append(f"{rule}: {what}")

    def delivered(
        self, queue: str, consumer: int, messages: Iterable[Arrival], life: int = 1
    ) -> None:
        """Notes deliveries in the order in which one consumer got them, in one life."""
        inbox = self.inboxes[queue]
        with inbox.lock:
            for message in messages:
                self.arrivals += 1
                self._arrive(inbox, consumer, *message)
                self._note_recovery(inbox, message, life)

    def _note_recovery(self, inbox: Inbox, message: Arrival, life: int) -> None:
        inflow = inbox.inflows.get(message.publisher)
        if inflow and message.number < inflow.journal.begin_of(life):
            inflow.mark(message.number, RECOVERED)

    def _arrive(
        self, inbox: Inbox, consumer: int, publisher: int, number: int, redelivered: bool
    ) -> None:
        inflow = inbox.inflows.get(publisher)
        if inflow is None or not self._expected(inflow, number):
            self.breaks("unexpected", f"publisher {publisher}, message {number} in {inbox.name}")
            return
        seen = inflow.mark(number, SEEN)
        if seen:
            if not redelivered and not inflow.route.moved and number not in inflow.journal.retried:
                self.breaks("unflagged", self.describe(inflow, number), inbox.name)
        elif inbox.order and (inbox.strict or not redelivered):
            newest = inflow.newest.get(consumer, -1)
            if number < newest:
                what = f"{self.describe(inflow, number)}, after {newest}"
                self.breaks("disordered", what, inbox.name)
            inflow.newest[consumer] = max(number, newest)

    def _expected(self, inflow: Inflow, number: int) -> bool:
        journal = inflow.journal
        return (
            number < journal.attempted
            and inflow.route.takes(number)
            and journal.fates[number] != WITHDRAWN
        )

    def consumed(self, queue: str, messages: Iterable[tuple[int, int]]) -> None:
        """Notes publisher and number of messages that are acked now, each delivered before."""
        inbox = self.inboxes[queue]
        with inbox.lock:
            for publisher, number in messages:
                inflow = inbox.inflows.get(publisher)
                if inflow is None or number >= inflow.journal.attempted:
                    continue
                if inflow.mark(number, CONSUMED) & CONSUMED:
                    self._broken["duplicated"] += 1

    def drained(self, queue: str, remaining: int) -> None:
        """Notes how many messages a queue has in the end, with all consumers gone."""
        self.inboxes[queue].remaining = remaining

    def missing(self, queue: str) -> int:
        """How many confirmed messages the queue still owes."""
        inbox = self.inboxes[queue]
        with inbox.lock:
            return sum(sum(1 for _ in inflow.lost()) for inflow in inbox.inflows.values())

    def verdict(self) -> Verdict:
        """Judges what was told so far; an unread queue is a fault of the test."""
        for inbox in self.inboxes.values():
            if inbox.remaining is None:
                self.breaks("undrained", f"{inbox.name} was not drained")
            elif inbox.remaining:
                self.breaks("remaining", f"{inbox.name} ends with {inbox.remaining} messages")
            for inflow in inbox.inflows.values():
                self._judge(inflow)
        for journal in self.journals:
            if journal.answered_twice:
                self.breaks("answered", f"{journal.name}: {journal.answered_twice} answered twice")
        return Verdict.of(self.journals, self._broken, self._examples)

    def _judge(self, inflow: Inflow) -> None:
        for first, last in _stretches(inflow.lost(), inflow.route):
            self._broken["lost"] += len(range(first, last + 1, inflow.route.every))
            self._example("lost", self.describe(inflow, first, last), inflow.route.queue)
        self._broken["recovered"] += inflow.recovered()
        for first, last in inflow.journal.groups:
            wanted = [number for number in range(first, last + 1) if inflow.route.takes(number)]
            marks = [inflow.mark(number, 0) for number in wanted]
            came = sum(1 for mark in marks if mark & CONSUMED)
            # Before a crash some may have been delivered of what was not kept then.
            if came < len(wanted) and any(mark & RECOVERED for mark in marks):
                share = f"{came} of {len(wanted)}"
                self.breaks("torn", f"{share} from {self.describe(inflow, first)} on")

    def describe(self, inflow: Inflow, first: int, last: int | None = None) -> str:
        """Names a message, or a stretch of them."""
        journal = inflow.journal
        numbers = f"message {first}" if last in (None, first) else f"messages {first} to {last}"
        return (
            f"{numbers} of {journal.name} (publisher {journal.publisher}, "
            f"life {journal.life_of(first)}) in {inflow.route.queue}"
        )


def _stretches(numbers: Iterable[int], route: Route) -> Iterator[tuple[int, int]]:
    """First and last of what stands together, in a share of one remainder."""
    first = last = -1
    for number in numbers:
        if first < 0:
            first = number
        elif number != last + route.every:
            yield first, last
            first = number
        last = number
    if first >= 0:
        yield first, last
