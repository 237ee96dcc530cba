"""A durable store over clean and unclean restarts, message by message."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.support.faulty_disk import FaultyDisk
from warrenmq.core import slices
from warrenmq.core.clock import ManualClock
from warrenmq.core.message.queue_entry import MessageRange, PagedOut
from warrenmq.core.store import checkpointer, compactor
from warrenmq.core.store.disk import RealDisk
from warrenmq.core.store.durable import DurableStore

from .history import Message
from .workload import Workload, all_messages


class ExactWorkload(Workload):
    """Purges, settles single messages and all of the oldest too, and compares all messages and
    definitions."""

    def run(self, steps: int, *, groups: bool = True) -> None:
        for _ in range(steps):
            super().run(1, groups=groups)
            self.random.choice([self.settle_one] * 4 + [self.settle_oldest, self.purge])()

    def settle_one(self) -> None:
        """Settles a message between two that stay."""
        queue = self._any()
        if queue is None or not queue.taken:
            return
        messages = queue.taken.pop(self.random.randrange(len(queue.taken)))
        entry, cut = messages.entry, self.random.randrange(messages.low, messages.high)
        for low, high in (messages.low, cut), (cut + 1, messages.high):
            if low < high:
                queue.taken.append(MessageRange(entry, low, high))
        self._settle(queue, MessageRange(entry, cut, cut + 1))

    def settle_oldest(self) -> None:
        queue = self._any()
        if queue is not None:
            self._take(queue)
            for messages in queue.taken:
                self._settle(queue, messages)
            queue.taken.clear()

    def purge(self) -> None:
        queue = self._any()
        if queue is None:
            return
        for held in list(queue.backlog):
            if isinstance(held, PagedOut):
                for _ in self.store.discard(queue, held):
                    pass
            elif held.count:
                self._settle(queue, queue.backlog.empty(held))
        queue.forget_backlog()
        left = {(queue.id, number) for number, _ in all_messages(self.store, queue)}
        self.history.settle({m for m in self.history.facts if m[0] == queue.id} - left, 0)

    def check(self) -> None:
        found: dict[Message, bytes] = {}
        for queue in self.queues.values():
            messages = list(all_messages(self.store, queue))
            assert queue.backlog.count + sum(held.count for held in queue.taken) == len(messages)
            ready = [number for number, _ in messages[: queue.backlog.count]]
            assert ready == sorted(ready)
            found |= {(queue.id, number): body for number, body in messages}
        facts = self.history.facts.items()
        assert found == {message: fact.body for message, fact in facts if fact.settled is None}
        values = {key: history[-1][1] for key, history in self.history.values.items()}
        assert self.store.definitions == {k: v for k, v in values.items() if v is not None}

    def restart(self) -> None:
        """Ends the process, in order or not, after everything is written."""
        self.settle_down()
        if self.random.random() < 0.5:
            self.stop()
        history = self.history.facts, self.history.values
        self.open()
        self.history.facts, self.history.values = history
        self.check()


@pytest.mark.parametrize("seed", range(40))
def test_all_written_messages_are_recovered(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With every second seed, slices are as short as can be and any two segments are compacted:
    whatever is asked falls between the steps of a compaction."""
    chance = random.Random(seed)
    if seed % 2:
        monkeypatch.setattr(slices, "SLICE_S", -1)
        monkeypatch.setattr(compactor, "MERGE", 2)
        monkeypatch.setattr(checkpointer, "LOG_SHARE", 0)
    segment_bytes = chance.choice([1_000, 2_000, 10_000, 2**26])
    steps = chance.choice([10, 60, 250])
    workload = ExactWorkload(FaultyDisk(), seed, segment_bytes=segment_bytes)
    workload.open()
    for _ in range(4):
        workload.run(steps)
        workload.check()
        workload.restart()


def test_unfinished_group_is_ignored(tmp_path: Path) -> None:
    """Whoever raises has not finished what was to be kept as a whole."""
    store = DurableStore(RealDisk(tmp_path), clock=ManualClock())

    def broken_off() -> None:
        with store.together():
            store.define(b"half", b"1")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        broken_off()
    with store.together():
        store.define(b"whole", b"1")
    store.define(b"alone", b"1")
    store.flush()
    store.writer.stop()
    assert list(DurableStore(RealDisk(tmp_path), clock=ManualClock()).definitions) == [
        b"whole", b"alone",
    ]  # fmt: skip
