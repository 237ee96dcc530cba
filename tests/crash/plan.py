"""Who publishes what where, and who consumes how: every way into the log and out of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.bench import frames
from tests.bench.client import Client
from tests.conformance import frames as tables

from . import repeating
from .clients import connected
from .consumers import Consumer, Style, in_ranges, odd_ones, rejecting, returning
from .journal import CONFIRMED, Route
from .publishers import ConfirmPublisher, Habit, HttpPublisher, Publisher, TransactionPublisher
from .site import Site
from .wire import Encoder, Form

FAN = "crash.fan"
PLAIN, LEFT, RIGHT, LARGE, WORK, DEAD = "plain", "left", "right", "large", "work", "dead"
COPIES = ("fan.1", "fan.2", "fan.3")
POSTED, COMMITTED = "posted", "committed"
DELAY, LATE, HOARD = "delay", "late", "hoard"
DELAY_MS = 300
URGENT, SAFE, HELD = "urgent", "safe", "held"
ONCE = "once"
HOLD = "crash.hold"
SHARED, SHARES = "crash.shared", ("share.1", "share.2")
ARGUMENTS: dict[str, dict[str, str | int]] = {
    WORK: {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": DEAD},
    DELAY: {
        "x-dead-letter-exchange": "", "x-dead-letter-routing-key": LATE,
        "x-message-ttl": DELAY_MS,
    },
    URGENT: {"x-max-priority": 5},
    SAFE: {"x-queue-type": "quorum", "x-delivery-limit": -1},
    ONCE: repeating.ARGUMENTS,
}  # fmt: skip
IMPORTANT = b"\x18\x00\x02\x04"
"""Persistent, with a priority."""
DELAYED = tables.table({"x-delayed-type": "direct"})[4:]
KEYS = ("key.5", "key.0")
"""One for each of the two shares, as their names are hashed."""
HELD_BACK = b"\x30\x00" + tables.table({"x-delay": DELAY_MS}) + b"\x02"

BATCHES = (Habit(1, 50), Habit(20, 100), Habit(200, 2_000), Habit(2_000, 10_000))
SINGLES = (Habit(1, 1, 0.001), Habit(1, 5, 0.001))
RARE = (Habit(1, 2, 0.05), Habit(3, 3, 0.1))
TRANSACTIONS = (Habit(1, 1, 0.005), Habit(100, 1, 0.01))


@dataclass(frozen=True)
class Publishing:
    """A publisher: `targets` are exchange and key, taken in turn; every `routes` gets its share."""

    name: str
    routes: Sequence[Route]
    targets: Sequence[tuple[str, str]]
    size: int
    habits: Sequence[Habit] = ()
    kind: type[Publisher] = ConfirmPublisher
    properties: Sequence[bytes] = (frames.PERSISTENT,)
    """Of the messages to each target, the last for all that follow."""


@dataclass(frozen=True)
class Consuming:
    queue: str
    style: Style
    prefetches: Sequence[int] = (0,)
    naps: float = 0.0
    strict: bool = False
    """One consumer at a time, which returns nothing: everything comes in order."""
    order: bool = True
    transacted: bool = False


PUBLISHERS = (
    Publishing("plain", [Route(PLAIN)], [("", PLAIN)], 16, BATCHES),
    Publishing("plain too", [Route(PLAIN)], [("", PLAIN)], 100, BATCHES),
    Publishing(
        "halves", [Route(LEFT, 2, (0,)), Route(RIGHT, 2, (1,))], [("", LEFT), ("", RIGHT)],
        30, BATCHES,
    ),
    Publishing("fan-out", [Route(queue) for queue in COPIES], [(FAN, "")], 64, BATCHES[:3]),
    Publishing(
        "work", [Route(WORK), Route(DEAD, 10, (3,), moved=True)], [("", WORK)], 200, SINGLES
    ),
    Publishing("large", [Route(LARGE)], [("", LARGE)], 200_000, RARE),
    Publishing(
        "passing", [Route(LEFT, 2, (0,), may_vanish=True), Route(RIGHT, 2, (1,))],
        [("", LEFT), ("", RIGHT)], 40, SINGLES,
        properties=(frames.TRANSIENT, frames.PERSISTENT),
    ),
    Publishing(
        "urgent", [Route(URGENT)], [("", URGENT), ("", URGENT)], 40, BATCHES[:3],
        properties=(frames.PERSISTENT, IMPORTANT),
    ),
    Publishing("safe", [Route(SAFE)], [("", SAFE)], 30, BATCHES[:3]),
    Publishing(
        "held", [Route(HELD, moved=True)], [(HOLD, HELD)], 50, SINGLES, properties=(HELD_BACK,)
    ),
    Publishing(
        "shared", [Route(SHARES[0], 2, (0,)), Route(SHARES[1], 2, (1,))],
        [(SHARED, KEYS[0]), (SHARED, KEYS[1])], 30, BATCHES[:3],
    ),
    Publishing(
        "repeating", [Route(ONCE)], [("", ONCE)], 60, (Habit(1, 1), Habit(300, 300)),
        repeating.RepeatingPublisher,
    ),
    Publishing("hoard", [Route(HOARD)], [("", HOARD)], 100, BATCHES),
    Publishing("delayed", [Route(LATE, moved=True)], [("", DELAY)], 60, BATCHES[:2]),
    Publishing("http", [Route(POSTED)], [("", POSTED)], 300, kind=HttpPublisher),
    Publishing(
        "transactions", [Route(COMMITTED)], [("", COMMITTED)], 50, TRANSACTIONS,
        TransactionPublisher,
    ),
)  # fmt: skip
CONSUMERS = (
    Consuming(PLAIN, in_ranges, strict=True),
    Consuming(LEFT, in_ranges, prefetches=(1_000,), naps=0.5, strict=True),
    Consuming(RIGHT, odd_ones, prefetches=(0, 300)),
    Consuming(RIGHT, in_ranges, prefetches=(20, 2_000)),
    Consuming(COPIES[0], in_ranges, strict=True),
    Consuming(COPIES[1], odd_ones, naps=0.3),
    Consuming(COPIES[1], odd_ones),
    Consuming(COPIES[2], returning, prefetches=(500,), naps=0.3),
    Consuming(WORK, rejecting(10, 3), prefetches=(1, 50)),
    Consuming(DEAD, in_ranges, order=False),
    Consuming(LARGE, in_ranges, prefetches=(1, 10), naps=0.3, strict=True),
    Consuming(POSTED, in_ranges, strict=True),
    Consuming(HOARD, in_ranges, prefetches=(5_000,), naps=0.95, strict=True),
    Consuming(LATE, in_ranges, prefetches=(0, 100)),
    Consuming(COMMITTED, in_ranges, strict=True, transacted=True),
    Consuming(URGENT, in_ranges, prefetches=(0, 500), naps=0.3, order=False),
    Consuming(SAFE, returning, prefetches=(200,), naps=0.3),
    Consuming(HELD, in_ranges, order=False),
    Consuming(ONCE, in_ranges, strict=True),
    Consuming(SHARES[0], in_ranges, strict=True),
    Consuming(SHARES[1], in_ranges, strict=True),
)


@dataclass
class Crew:
    """The workers of a run."""

    publishers: list[Publisher]
    consumers: list[Consumer]


def make_crew(site: Site, *, transactions: bool) -> Crew:
    """Declares all that the crew needs, on a server that runs."""
    left_out = {POSTED} if site.http is None else set()
    left_out |= set() if transactions else {COMMITTED}
    readers = [one for one in CONSUMERS if one.queue not in left_out]
    for one in readers:
        site.checker.queue(one.queue, order=one.order, strict=one.strict)
    site.checker.queue(DELAY)
    _declare(site)
    publishers = [
        _publisher(site, one) for one in PUBLISHERS if one.routes[0].queue not in left_out
    ]
    return Crew(publishers, [_consumer(site, index, one) for index, one in enumerate(readers)])


def _publisher(site: Site, plan: Publishing) -> Publisher:
    journal = site.checker.publisher(plan.name, plan.routes)
    forms = [
        Form(journal.publisher, exchange, key, plan.size,
             plan.properties[min(index, len(plan.properties) - 1)])
        for index, (exchange, key) in enumerate(plan.targets)
    ]  # fmt: skip
    site.fillers[journal.publisher] = forms[0].filler
    return plan.kind(site, journal, forms, plan.habits)


def _consumer(site: Site, index: int, plan: Consuming) -> Consumer:
    return Consumer(site, plan.queue, index, plan.style, prefetches=plan.prefetches, naps=plan.naps)


def _declare(site: Site) -> None:
    """Returns when a later confirm covers what was declared."""
    with connected(site.amqp) as client:
        client.declare_exchange(FAN, "fanout", durable=True)
        for queue in site.checker.inboxes:
            _declare_queue(client, queue, ARGUMENTS.get(queue, {}))
        for queue in COPIES:
            client.bind(queue, FAN, "")
        client.declare_exchange(HOLD, "x-delayed-message", durable=True, arguments=DELAYED)
        client.bind(HELD, HOLD, HELD)
        client.declare_exchange(SHARED, "x-consistent-hash", durable=True)
        for queue in SHARES:
            client.bind(queue, SHARED, "10")
        _publish_one(site, client)


def _publish_one(site: Site, client: Client) -> None:
    journal = site.checker.publisher("setup", [Route(PLAIN)])
    form = Form(journal.publisher, "", PLAIN, 20)
    site.fillers[journal.publisher] = form.filler
    client.select_confirms()
    client.socket.sendall(Encoder(form).publishes(journal.attempt(1), 1))
    client.expect(60, 80)
    journal.settle(0, 0, CONFIRMED)


def _declare_queue(client: Client, name: str, arguments: dict[str, str | int]) -> None:
    table = tables.table(arguments)
    client.call(50, 10, b"\x00\x00" + frames.short(name) + b"\x02" + table)
