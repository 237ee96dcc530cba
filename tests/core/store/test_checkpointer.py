"""When checkpoints are made, and dead segments removed."""

from __future__ import annotations

from itertools import pairwise
from threading import current_thread

import pytest

from tests.core.life import Life, numbered, segments_of
from tests.support.amqp import method
from warrenmq.core import slices
from warrenmq.core.store import checkpointer
from warrenmq.core.store import small_records as entries
from warrenmq.core.store.segment import Segment

SEGMENT_BYTES = 3_000
KIB = 1024


def churn(life: Life, count: int) -> None:
    for _ in range(count):
        life.publish(bytes(200))
        assert life.get() is not None
        life.turns(2, each_ms=10)


@segments_of(SEGMENT_BYTES)
def test_a_checkpoint_follows_each_roll(life: Life) -> None:
    for number in range(10):
        churn(life, 12)
        newest = int(life.files(".state")[-1].removesuffix(".state"))
        assert newest >= life.store.log.open_number - 1, number
    assert len(life.files(".state")) == 2


@segments_of(SEGMENT_BYTES)
def test_nothing_is_replayed_after_a_clean_stop(life: Life) -> None:
    churn(life, 30)
    life.stop()
    sizes = [
        (life.directory / name).stat().st_size
        for name in sorted(path.name for path in life.directory.glob("*.log"))
    ]
    assert all(size < SEGMENT_BYTES + KIB for size in sizes)
    life.open()
    assert not any(segment.unclean for segment in life.store.log.segments.values())


@segments_of(SEGMENT_BYTES)
def test_segment_with_an_unsettled_message_is_kept(life: Life) -> None:
    for body in numbered(40):
        life.publish(body * 30)
    before = life.files()
    life.turns(50, each_ms=6_000)
    assert set(before) <= set(life.files())
    life.crash()
    assert life.bodies() == [body * 30 for body in numbered(40)]


@segments_of(256 * KIB)
def test_many_declarations_leave_a_small_disk(life: Life) -> None:
    life.declare("stays")
    declare = method(1, "Queue.Declare", queue="q", durable=True)
    bind = method(1, "Queue.Bind", queue="q", exchange="amq.topic", routing_key="a.#")
    delete = method(1, "Queue.Delete", queue="q")
    for _ in range(100):
        life.client.feed((declare + bind + delete) * 200)
        life.turns(2, each_ms=100)
    life.write()
    assert life.disk_bytes < 4 * 256 * KIB
    assert all((life.directory / name).stat().st_size < 1_000 for name in life.files(".state"))
    life.restart()
    assert set(life.broker.vhosts["/"].queues) == {"stays"}
    life.restart()
    assert life.disk_bytes < 2 * 256 * KIB


@segments_of(64 * KIB)
def test_short_lived_queues_do_not_grow_the_disk(life: Life) -> None:
    for number in range(300):
        name = f"q{number}"
        life.declare(name)
        life.publish_together(numbered(20), name)
        assert life.get(name) is not None
        life.client.call("Queue.Delete", queue=name)
        life.turns(1, each_ms=20)
    life.write()
    assert life.disk_bytes < 5 * 64 * KIB
    assert not life.store.marks.by_queue
    held = [segment.parts for segment in life.store.log.segments.values() if segment.sealed]
    assert not any(held)
    assert life.broker.memory.resident_bytes == 0


@segments_of(16 * KIB)
def test_acks_alone_do_not_grow_the_disk(life: Life) -> None:
    """One message is given back and taken again for a long time, others are settled oddly."""
    life.publish_together(numbered(1_000))
    life.write()
    life.client.consume("q")
    for tag in range(2, 1_000, 2):
        life.client.send("Basic.Ack", delivery_tag=tag)
        life.turns(1, each_ms=10)
    life.write()
    assert life.disk_bytes < 1_000 * 80 + 5 * 16 * KIB
    assert len(life.files()) <= 10
    life.crash()
    odd = [number for number in range(1_000) if not number % 2 or number == 999]
    assert life.bodies() == [b"%06d" % number for number in odd]


def test_checkpoints_are_a_minor_part_of_the_written_bytes(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the first after a start, and one that only would let dead segments go."""
    monkeypatch.setattr(checkpointer, "DEAD_BYTES", 500)
    for number in range(300):
        life.declare(f"q{number}")
    life.publish(bytes(1_000), "q0")
    life.segment_bytes = SEGMENT_BYTES
    life.restart()
    life.write()
    number = life.store.log.open_number
    assert life.get("q0") is not None
    life.turns(5, each_ms=1_000)
    for _ in range(4):
        life.publish(bytes(SEGMENT_BYTES), "q1")
    life.turns(5, each_ms=1_000)
    assert life.store.log.open_number == number
    while life.store.log.open_number == number:
        life.publish(bytes(SEGMENT_BYTES), "q1")
    assert 4 < life.queue("q1").ready_count < 100


def many_queues(life: Life) -> Segment:
    """A segment that holds a message of each of forty queues, of which half are settled."""
    for number in range(40):
        life.declare(f"q{number}")
        life.publish(b"m", f"q{number}")
    for number in range(20):
        assert life.get(f"q{number}") is not None
    segment = life.store.log.segments[life.store.log.open_number]
    assert len(segment.parts) == 40
    return segment


def test_the_index_of_a_segment_is_encoded_by_the_writer(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment = many_queues(life)
    encode, threads = entries.encode_indexes, set()

    def noted(*given: object) -> list[bytes]:
        threads.add(current_thread().name)
        return encode(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(entries, "encode_indexes", noted)
    life.start()
    life.store.log.roll()
    life.wait(lambda: len(segment.parts) == 20)
    assert threads == {"log-writer"}
    assert segment.end == (life.directory / segment.name).stat().st_size
    life.abandon()
    life.open()
    assert [life.bodies(f"q{number}") for number in range(40)] == [[]] * 20 + [[b"m"]] * 20


def test_indexes_are_freed_in_slices(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    segment = many_queues(life)
    life.write()
    monkeypatch.setattr(slices, "SLICE_S", -1)
    life.store.log.roll()
    life.store.request()
    left = [40]
    while left[-1]:
        life.store.turned()
        left.append(sum(part.index is not None for part in segment.parts.values()))
    assert max(before - after for before, after in pairwise(left)) <= 2
