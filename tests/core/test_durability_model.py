"""A broker on a durable store against a plain model, through restarts in order and crashes.

What was confirmed must be there, in its order, and what was never published must not. What
nobody was told of may be lost by a crash, but never twice there or nowhere: a dead letter is in
one of its two places.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.support.amqp import Reply, publish
from warrenmq.core import slices
from warrenmq.core.store import checkpointer, compactor

from .life import Life

pytestmark = pytest.mark.promise

DEAD = "dead"
LIMIT = 5
ARGUMENTS: dict[str, dict[str, object]] = {
    "plain": {},
    "other": {},
    "rejecting": {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": DEAD},
    "limited": {"x-max-length": LIMIT},
    "ranked": {"x-max-priority": 3},
    "transient": {},
    DEAD: {},
}
NAMES = sorted(ARGUMENTS)
KINDS: tuple[dict[str, object], ...] = ({}, {}, {"priority": 2}, {"expiration": "999999999"})
"""Of messages: those with a priority or a time of their own are known one by one."""


@dataclass
class Held:
    """A message in a queue; `order` says where in it, by priority and age."""

    body: bytes
    order: tuple[int, int]
    persistent: bool
    seen: bool = False


@dataclass
class Model:
    """One queue: `unsure` are messages of which a crash may or may not know that they left."""

    name: str
    ready: list[Held] = field(default_factory=list)
    unacked: dict[int, Held] = field(default_factory=dict)
    unsure: list[Held] = field(default_factory=list)
    was_read: bool = False

    @property
    def durable(self) -> bool:
        return self.name != "transient"

    def put(self, held: Held) -> None:
        self.ready.append(held)
        self.ready.sort(key=lambda held: held.order)


class Durability(RuleBasedStateMachine):
    life_type = Life
    segment_bytes = 1_200

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="warren-model-"))
        self.life = self.life_type(self.directory, segment_bytes=self.segment_bytes)
        self.queues: dict[str, Model] = {}
        self.moved: list[tuple[Held, str]] = []
        """Dead letters that may be at their source still, if the broker crashes now."""
        self.count = 0
        self.connected()

    def connected(self) -> None:
        self.client = self.life.client
        self.client.send("Confirm.Select")
        self.consumers: set[str] = set()

    def teardown(self) -> None:
        self.life.abandon()
        rmtree(self.directory)

    # -- what it does

    @initialize()
    def first_queues(self) -> None:
        for name in NAMES:
            self.declare(name)

    @rule(name=st.sampled_from(NAMES))
    def declare(self, name: str) -> None:
        if name in self.queues:
            return
        self.client.declare(name, durable=name != "transient", arguments=ARGUMENTS[name])
        self.client.call("Queue.Bind", queue=name, exchange="amq.fanout")
        self.queues[name] = Model(name)
        self.write()

    @rule(
        name=st.sampled_from(NAMES), count=st.integers(1, 12), persistent=st.booleans(),
        size=st.sampled_from((1, 7, 150)), everywhere=st.booleans(), kind=st.sampled_from(KINDS),
    )  # fmt: skip
    def publish(
        self, name: str, count: int, persistent: bool, size: int, everywhere: bool,
        kind: dict[str, object],
    ) -> None:  # fmt: skip
        if name not in self.queues:
            return
        properties = {"delivery_mode": 2 if persistent else 1, **kind}
        exchange, key = ("amq.fanout", "") if everywhere else ("", name)
        data = b""
        for _ in range(count):
            self.count += 1
            body = b"%d " % self.count + b"x" * size
            data += publish(1, body, properties, exchange=exchange, routing_key=key)
            for held in self.queues.values() if everywhere else [self.queues[name]]:
                rank = -2 if held.name == "ranked" and "priority" in kind else 0
                held.put(Held(body, (rank, self.count), persistent))
        confirmed = _confirmed(self.client.feed(data)) or self.turned_confirm()
        assert confirmed
        self.trim()
        if persistent and any(held.durable for held in self.queues.values()):
            self.written()

    def turned_confirm(self) -> bool:
        self.life.turns()
        return _confirmed(self.client.come())

    def trim(self) -> None:
        limited = self.queues.get("limited")
        if limited is not None and "limited" not in self.consumers:
            while len(limited.ready) > LIMIT:
                limited.unsure.append(limited.ready.pop(0))

    @rule(name=st.sampled_from(NAMES), count=st.integers(1, 9), ack=st.booleans())
    def get(self, name: str, count: int, ack: bool) -> None:
        model = self.queues.get(name)
        if model is None:
            return
        for _ in range(count):
            found = self.life.get(name, ack=ack)
            if found is None:
                assert not model.ready
                return
            model.was_read = True
            held = model.ready.pop(0)
            assert (found.body, found["redelivered"]) == (held.body, held.seen)
            if ack:
                model.unsure.append(held)
            else:
                held.seen = True
                model.unacked[found["delivery_tag"]] = held

    @rule(
        name=st.sampled_from(NAMES), data=st.data(),
        how=st.sampled_from(("ack", "requeue", "reject", "all", "requeue all")),
    )  # fmt: skip
    def settle(self, name: str, data: st.DataObject, how: str) -> None:
        model = self.queues.get(name)
        if model is None or not model.unacked:
            return
        tags = sorted(model.unacked)
        if not how.endswith("all"):
            tags = [data.draw(st.sampled_from(tags))]
        for tag in tags:
            held = model.unacked.pop(tag)
            if how.startswith("requeue"):
                self.client.send("Basic.Nack", delivery_tag=tag, requeue=True)
                model.put(held)
            elif how == "reject":
                self.client.send("Basic.Nack", delivery_tag=tag)
                self.rejected(model, held)
            else:
                self.client.send("Basic.Ack", delivery_tag=tag)
                model.unsure.append(held)
        self.life.turns()
        self.trim()

    def rejected(self, model: Model, held: Held) -> None:
        if model.name != "rejecting" or DEAD not in self.queues:
            model.unsure.append(held)
            return
        self.count += 1
        self.queues[DEAD].put(Held(held.body, (0, self.count), held.persistent))
        self.moved.append((held, model.name))

    @rule(name=st.sampled_from(NAMES), asked=st.booleans())
    def purge(self, name: str, asked: bool) -> None:
        model = self.queues.get(name)
        if model is None:
            return
        if asked:
            self.ask(model)
        purged = self.life.purge(name)
        assert purged == len(model.ready)
        model.unsure += model.ready
        model.ready = []

    def ask(self, model: Model) -> None:
        """Somebody wants the oldest message, which is on its way when the next thing happens."""
        model.was_read = True
        self.life.broker.tick()
        self.life.queue(model.name).when_head_ready(lambda: None)

    @rule(name=st.sampled_from([name for name in NAMES if name != DEAD]), asked=st.booleans())
    def delete(self, name: str, asked: bool) -> None:
        model = self.queues.get(name)
        if model is None or model.unacked:
            return
        if asked:
            self.ask(model)
        self.client.call("Queue.Delete", queue=name)
        self.life.write()
        self.written()
        del self.queues[name]

    @rule(name=st.sampled_from(NAMES), head=st.sampled_from((0, 300)), transient=st.booleans())
    def page_out(self, name: str, head: int, transient: bool) -> None:
        if name in self.queues:
            self.life.page_out(name, head, transient=transient)

    @rule()
    def page_out_unacked(self) -> None:
        for connection in self.life.broker.connections:
            for messages in connection.unacked():
                self.life.store.batches.evict(messages.entry.batch)

    @rule(times=st.integers(1, 20), each_ms=st.sampled_from((0, 10, 6_000)))
    def time_passes(self, times: int, each_ms: int) -> None:
        self.life.turns(times, each_ms=each_ms)

    @rule()
    def write(self) -> None:
        self.life.write()
        self.written()

    def written(self) -> None:
        self.moved.clear()
        for model in self.queues.values():
            model.unsure.clear()

    # -- the process ends

    @rule(look=st.booleans())
    def restart(self, look: bool) -> None:
        self.life.restart()
        self.ended()
        self.written()
        if look:
            self.look(exact=True)

    @rule(written=st.booleans())
    def crash(self, written: bool) -> None:
        if written:
            self.write()
        self.life.crash()
        self.ended()
        self.look(exact=False)
        self.written()

    def ended(self) -> None:
        self.connected()
        self.queues.pop("transient", None)
        for model in self.queues.values():
            for held in model.unacked.values():
                model.put(held)
            model.unacked.clear()
            model.ready = [held for held in model.ready if held.persistent]
            model.unsure = [held for held in model.unsure if held.persistent]
        self.moved = [held for held in self.moved if held[0].persistent]
        self.trim()

    def look(self, *, exact: bool) -> None:
        """Takes all there is and gives it back."""
        places: dict[bytes, list[str]] = {}
        for name in sorted(self.queues):
            for held in self.look_at(self.queues[name], exact=exact):
                places.setdefault(held.body, []).append(name)
        for held, source in self.moved:
            at = places.get(held.body, [])
            assert (source in at) != (DEAD in at), f"{held.body!r} is in {at}"
            self.came_back(held, source, is_back=source in at)

    def came_back(self, held: Held, source: str, *, is_back: bool) -> None:
        if is_back:
            model, dead = self.queues[source], self.queues[DEAD]
            model.put(held)
            dead.ready = [other for other in dead.ready if other.body != held.body]

    def look_at(self, model: Model, *, exact: bool) -> list[Held]:
        self.life.turns()
        maybe = {held.body: held for held in model.unsure}
        maybe |= {held.body: held for held, source in self.moved if source == model.name}
        if model.name == DEAD:
            maybe |= {held.body: held for held, _ in self.moved}
        sure = [held for held in model.ready if held.body not in maybe]
        known = {held.body: held for held in (*maybe.values(), *model.ready)}
        found: list[Held] = []
        tags = []
        while reply := self.life.get(model.name, ack=False):
            assert reply.body in known, f"{reply.body!r} in {model.name} is unexpected"
            held = known[reply.body]
            assert reply.body not in {other.body for other in found}, "twice there"
            if exact:
                assert reply["redelivered"] == held.seen
            elif not model.was_read:
                assert not reply["redelivered"]
            found.append(held)
            tags.append(reply["delivery_tag"])
        there = [held.body for held in found]
        assert [held.body for held in found if held in sure] == [held.body for held in sure]
        orders = [held.order for held in found]
        assert orders == sorted(orders)
        self.give_back(model, found, tags)
        assert set(there) <= set(known)
        return found

    def give_back(self, model: Model, found: list[Held], tags: list[int]) -> None:
        moved = {held.body for held, _ in self.moved}
        for tag in tags:
            self.client.send("Basic.Nack", delivery_tag=tag, requeue=True)
        self.life.turns()
        model.was_read |= bool(found)
        for held in found:
            held.seen = True
        model.ready = [held for held in found if held.body not in moved or model.name == DEAD]
        model.unsure = []

    @invariant()
    def counts_agree(self) -> None:
        for name, model in self.queues.items():
            assert self.life.queue(name).ready_count == len(model.ready), name

    @invariant()
    def nothing_failed(self) -> None:
        assert not self.life.store.has_failed

    @precondition(lambda self: not any(held.ready or held.unacked for held in self.queues.values()))
    @rule()
    def empty_needs_little(self) -> None:
        self.restart(look=False)
        self.life.turns(30, each_ms=6_000)
        self.restart(look=False)
        assert len(self.life.files()) <= 4


class LifeInSteps(Life):
    """Each turn is a millisecond, in which the store goes on with its work."""

    def turns(self, count: int = 3, *, each_ms: int = 0) -> None:
        super().turns(count, each_ms=max(1, each_ms))


class DurabilityInSteps(Durability):
    """The same with every slice as short as can be, a segment for each publish, and any two
    segments compacted: whatever clients do falls between the steps of a compaction."""

    life_type = LifeInSteps
    segment_bytes = 200

    def __init__(self) -> None:
        self.patches = pytest.MonkeyPatch()
        self.patches.setattr(slices, "SLICE_S", -1)
        self.patches.setattr(compactor, "MERGE", 2)
        self.patches.setattr(checkpointer, "LOG_SHARE", 0)
        super().__init__()

    def teardown(self) -> None:
        super().teardown()
        self.patches.undo()

    @rule(count=st.integers(2, 4), turns=st.integers(0, 40))
    def fill(self, count: int, turns: int) -> None:
        for size in range(count):
            self.publish("plain", 4, True, size, True, {})
        self.life.turns(turns)


def _confirmed(replies: list[Reply]) -> bool:
    return any(reply.name == "Basic.Ack" for reply in replies)


TestDurability = Durability.TestCase
TestDurabilityInSteps = DurabilityInSteps.TestCase
TestDurability.settings = settings(
    max_examples=50, stateful_step_count=30, deadline=None,
    suppress_health_check=[HealthCheck.too_slow], report_multiple_bugs=False,
)  # fmt: skip
TestDurabilityInSteps.settings = settings(TestDurability.settings, max_examples=30)
