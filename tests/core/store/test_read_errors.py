"""Sectors that can't be read cost only the messages in them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

import pytest

from tests.core.messages import Sent, whole
from tests.support.faulty_disk import SECTOR, FaultyDisk
from warrenmq.core.clock import ManualClock
from warrenmq.core.message.queue_entry import MessageRange, PagedOut, QueueEntry
from warrenmq.core.store.durable import DurableStore
from warrenmq.core.store.offline import verify
from warrenmq.core.wire.properties import PERSISTENT

from .fake_queue import FakeQueue

COUNT = 40


def publish(store: DurableStore, queue: FakeQueue, first: int, count: int) -> None:
    for number in range(first, first + count):
        sent = Sent(b"%06d" % number * 300)
        batch = whole(sent, sequence=store.reserve(1), attributes=PERSISTENT)
        store.append(batch, [(queue, QueueEntry(batch, None))])
        store.request()
        store.turned()


def opened(disk: FaultyDisk) -> tuple[DurableStore, list[OSError]]:
    failures: list[OSError] = []
    clock = ManualClock(wall_s=1_700_000_000.0)
    store = DurableStore(disk, clock=clock, segment_bytes=30_000, on_failure=failures.append)
    return store, failures


def left(store: DurableStore, queue: FakeQueue) -> list[int]:
    """The numbers of the messages that can be read."""
    found: list[int] = []
    for paged_out in store.recovered.of(queue):
        assert isinstance(paged_out, PagedOut)
        while paged_out.count:
            read: list[MessageRange] = []
            store.page_in.request(paged_out, read.extend)
            store.turned()
            found += [int(messages.entry.batch.body(0)[:6]) for messages in read]
    store.recovered.complete()
    return found


@pytest.fixture
def queue() -> FakeQueue:
    return FakeQueue(5)


@pytest.fixture
def disk(queue: FakeQueue) -> FaultyDisk:
    """What a killed process left."""
    disk = FaultyDisk()
    store, _ = opened(disk)
    publish(store, queue, 0, COUNT)
    return disk.killed()


def logs(disk: FaultyDisk) -> list[str]:
    return [name for name in disk.names() if name.endswith(".log")]


def sectors(disk: FaultyDisk, name: str) -> range:
    return range(len(disk.files()[name].rstrip(b"\0")) // SECTOR)


def test_a_sector_that_a_start_can_not_read_costs_its_messages(
    disk: FaultyDisk, queue: FakeQueue, caplog: pytest.LogCaptureFixture
) -> None:
    for name in logs(disk):
        for sector in sectors(disk, name)[::17]:
            image = disk.killed()
            image.bad_sectors = {(name, sector)}
            before = image.files()[name]
            for _ in range(3):
                store, failures = opened(image)
                numbers = left(store, queue)
                assert numbers == sorted(numbers) and len(numbers) >= COUNT - 5
                publish(store, queue, 100, 1)
                assert store.progress.committed >= store.progress.refused and not failures
                if len(numbers) < COUNT:
                    assert name in caplog.text
            kept = image.files()[name]
            assert kept[: len(before)] == before or not store.recovered.unreadable


def test_unreadable_segment_is_kept_when_all_messages_are_settled(
    disk: FaultyDisk, queue: FakeQueue
) -> None:
    """What it holds may be readable elsewhere."""
    name = logs(disk)[-1]
    disk.bad_sectors = {(name, sectors(disk, name)[-3])}
    before = disk.files()[name]
    store, _ = opened(disk)
    assert store.recovered.unreadable.keys() == {name}
    for paged_out in store.recovered.of(queue):
        assert isinstance(paged_out, PagedOut)
        for _ in store.discard(queue, paged_out):
            pass
    store.recovered.complete()
    for number in range(3):
        publish(store, queue, 1_000 * number, 60)
        store.stop()
        store, _ = opened(disk)
        left(store, queue)
    assert disk.files()[name] == before
    unread = [found.name for found in verify(disk) if "partly unreadable" in "".join(found.faults)]
    assert unread == [name]


def test_a_sector_that_fails_while_running_ends_nothing(
    disk: FaultyDisk, queue: FakeQueue, caplog: pytest.LogCaptureFixture
) -> None:
    store, failures = opened(disk)
    name = logs(disk)[0]
    disk.bad_sectors = {(name, 9)}
    numbers = left(store, queue)
    assert COUNT - 5 <= len(numbers) < COUNT
    assert store.recovered.unreadable == {name: "Input/output error"}
    publish(store, queue, COUNT, 3)
    assert not failures and store.progress.committed
    disk.bad_sectors = set()
    store.stop()
    assert left(opened(disk)[0], queue) == list(range(COUNT + 3))


def test_a_checkpoint_that_can_not_be_read_is_passed_over(
    disk: FaultyDisk, queue: FakeQueue
) -> None:
    store, _ = opened(disk)
    left(store, queue)
    store.stop()
    newest = max(name for name in disk.names() if name.endswith(".state"))
    disk.bad_sectors = {(newest, 0)}
    assert left(opened(disk)[0], queue) == list(range(COUNT))


# -- read with errors at one start, well at a later one


def publish_small(store: DurableStore, queues: Sequence[FakeQueue], count: int) -> None:
    """Records of 60 to 260 bytes, now of the first queue, now of all, in groups now and then."""
    for number in range(count):
        batch = whole(
            Sent(b"%06d" % number * (1 + number * 7 % 33)),
            sequence=store.reserve(1), attributes=PERSISTENT,
        )  # fmt: skip
        store.append(
            batch, [(queue, QueueEntry(batch, None)) for queue in queues[: 1 + number % 2]]
        )
        if number % 20 == 0:
            store.request()
            store.turned()
    store.flush()
    store.turned()


def served(store: DurableStore, queues: Iterable[FakeQueue]) -> dict[int, list[int]]:
    """By queue the numbers of the messages that can be read; they are then `taken`."""
    for queue in queues:
        queue.forget_backlog()
        queue.taken.clear()
        for held in store.recovered.of(queue):
            assert isinstance(held, PagedOut)
            queue.backlog.append_range(held)
    store.recovered.complete()
    for queue in queues:
        while any(isinstance(held, PagedOut) for held in queue.backlog):
            queue.page_in_all(store)
        queue.taken += [
            messages for messages in queue.backlog if isinstance(messages, MessageRange)
        ]
    return {
        queue.id: [number for messages in queue.taken for number in numbers_of(messages)]
        for queue in queues
    }


def numbers_of(messages: MessageRange) -> list[int]:
    return [messages.entry.sequence(at) for at in range(messages.low, messages.high)]


def settle_some(store: DurableStore, queue: FakeQueue, chance: random.Random) -> set[int]:
    settled = set()
    for messages in queue.taken:
        if chance.random() < 0.5:
            store.settle(queue, messages)
            settled.update(numbers_of(messages))
    store.flush()
    store.turned()
    return settled


@pytest.mark.parametrize("has_checkpoint", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_settlements_during_read_errors_hold_afterwards(has_checkpoint: bool, seed: int) -> None:
    """A start reads a segment with errors, messages are settled, and the next one reads it well:
    these are gone, and no other that was served."""
    chance = random.Random(seed)
    queues = [FakeQueue(5), FakeQueue(6)]
    disk = FaultyDisk()
    store = opened(disk)[0]
    publish_small(store, queues, 600)
    if has_checkpoint:
        store.stop()
        store = opened(disk)[0]
        served(store, queues)
        settle_some(store, queues[0], chance)
        store.stop()
    for name in logs(disk):
        image = disk.killed()
        some = chance.sample(list(sectors(disk, name)), 3)
        # The end too, where the index is.
        image.bad_sectors = {(name, sector) for sector in [*some, sectors(disk, name)[-1]]}
        store = opened(image)[0]
        before = served(store, queues)
        settled = {queue.id: settle_some(store, queue, chance) for queue in queues}
        if chance.random() < 0.5:
            store.stop()
        image = image.killed()
        after = served(opened(image)[0], queues)
        for queue in queues:
            kept = set(before[queue.id]) - settled[queue.id]
            assert kept <= set(after[queue.id])
            assert not settled[queue.id] & set(after[queue.id])
