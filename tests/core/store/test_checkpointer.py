"""Checkpoints, and the segments that go when nobody needs them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from threading import current_thread

import pytest

from tests.core.life import PERSISTENT, Life, numbered
from tests.support.amqp import method, publish
from warrenmq.core import slices
from warrenmq.core.store import durable as log
from warrenmq.core.store import small_records as entries
from warrenmq.core.store.segment import Segment

SEGMENT_BYTES = 3_000
KIB = 1024


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    found = Life(tmp_path / "log", segment_bytes=SEGMENT_BYTES)
    found.declare("q")
    yield found
    found.abandon()


def churn(life: Life, count: int) -> None:
    for _ in range(count):
        life.publish(bytes(200))
        assert life.get() is not None
        life.turns(2, each_ms=10)


def test_a_checkpoint_follows_each_roll(life: Life) -> None:
    for number in range(10):
        churn(life, 12)
        newest = int(life.files(".state")[-1].removesuffix(".state"))
        assert newest >= life.store.open_number - 1, number
    assert len(life.files(".state")) == 2


def test_nothing_is_replayed_after_a_clean_stop(life: Life) -> None:
    churn(life, 30)
    life.stop()
    sizes = [
        (life.directory / name).stat().st_size
        for name in sorted(path.name for path in life.directory.glob("*.log"))
    ]
    assert all(size < SEGMENT_BYTES + KIB for size in sizes)
    life.open()
    assert not any(segment.unclean for segment in life.store.segments.values())


def test_a_segment_with_a_live_message_stays(life: Life) -> None:
    for body in numbered(40):
        life.publish(body * 30)
    before = life.files()
    life.turns(50, each_ms=6_000)
    assert set(before) <= set(life.files())
    life.crash()
    assert life.bodies() == [body * 30 for body in numbered(40)]


def test_either_of_the_two_last_checkpoints_can_be_started_from(life: Life) -> None:
    for body in numbered(5):
        life.publish(body)
        churn_beside(life, 20)
    life.write()
    newest = life.files(".state")[-1]
    life.abandon()
    path = life.directory / newest
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)
    life.open()
    assert life.bodies() == numbered(5)


def churn_beside(life: Life, count: int) -> None:
    if "beside" not in life.broker.vhosts["/"].queues:
        life.declare("beside")
    for _ in range(count):
        life.publish(bytes(200), "beside")
        assert life.get("beside") is not None
        life.turns(2, each_ms=10)


def test_a_checkpoint_is_made_in_slices(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker goes on between them, and what it does meanwhile is not lost."""
    monkeypatch.setattr(slices, "SLICE_S", -1)
    for number in range(30):
        life.declare(f"other{number}")
    for body in numbered(20):
        life.publish(body * 20)
        if body != b"000007":
            found = life.get(ack=False)
            assert found is not None
            life.client.send("Basic.Ack", delivery_tag=found["delivery_tag"])
        life.turns(1, each_ms=10)
    before = set(life.files(".state"))
    churn_beside(life, 40)
    assert life.files(".state")[-1] not in before
    life.write()
    life.crash()
    assert set(life.bodies()) <= {body * 20 for body in numbered(20)}
    assert len(life.broker.vhosts["/"].queues) == 32


def test_a_checkpoint_waits_for_what_it_has_seen(life: Life) -> None:
    """A settlement that it knows of must not be there without its other half, a dead letter."""
    life.declare("dead")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    life.declare("source", arguments=arguments)
    life.publish(b"letter", "source")
    assert life.get("source", ack=False) is not None
    life.write()
    life.store.roll()
    life.client.send("Basic.Nack", delivery_tag=1)
    assert life.store._checkpointer._barrier is None or (
        life.store._checkpointer._barrier >= life.store._batch.number - 1
    )
    life.write()
    life.crash()
    assert (life.bodies("source"), life.bodies("dead")) == ([], [b"letter"])


def test_many_declarations_leave_a_small_disk(tmp_path: Path) -> None:
    life = Life(tmp_path / "log", segment_bytes=256 * KIB)
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
    life.abandon()


def test_queues_that_come_and_go_with_messages(tmp_path: Path) -> None:
    life = Life(tmp_path / "log", segment_bytes=64 * KIB)
    for number in range(300):
        name = f"q{number}"
        life.declare(name)
        life.client.feed(
            b"".join(publish(1, body, PERSISTENT, routing_key=name) for body in numbered(20))
        )
        assert life.get(name) is not None
        life.client.call("Queue.Delete", queue=name)
        life.turns(1, each_ms=20)
    life.write()
    assert life.disk_bytes < 5 * 64 * KIB
    assert not life.store.marks
    held = [segment.parts for segment in life.store.segments.values() if segment.sealed]
    assert not any(held)
    assert life.broker.memory.resident_bytes == 0
    life.abandon()


def test_acks_alone_do_not_grow_the_disk(tmp_path: Path) -> None:
    """One message is given back and taken again for a long time, others are settled oddly."""
    life = Life(tmp_path / "log", segment_bytes=16 * KIB)
    life.declare("q")
    life.client.feed(
        b"".join(publish(1, body, PERSISTENT, routing_key="q") for body in numbered(1_000))
    )
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
    life.abandon()


def test_a_checkpoint_waits_until_it_is_the_smaller_part_of_what_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the first after a start, and one that only would let dead segments go."""
    monkeypatch.setattr(log, "DEAD_BYTES", 500)
    life = Life(tmp_path / "log")
    for number in range(300):
        life.declare(f"q{number}")
    life.publish(bytes(1_000), "q0")
    life.segment_bytes = SEGMENT_BYTES
    life.restart()
    life.write()
    number = life.store.open_number
    assert life.get("q0") is not None
    life.turns(5, each_ms=1_000)
    for _ in range(4):
        life.publish(bytes(SEGMENT_BYTES), "q1")
    life.turns(5, each_ms=1_000)
    assert life.store.open_number == number
    while life.store.open_number == number:
        life.publish(bytes(SEGMENT_BYTES), "q1")
    assert 4 < life.queue("q1").ready_count < 100
    life.abandon()


def many_queues(life: Life) -> Segment:
    """A segment that holds a message of each of forty queues, of which half are settled."""
    for number in range(40):
        life.declare(f"q{number}")
        life.publish(b"m", f"q{number}")
    for number in range(20):
        assert life.get(f"q{number}") is not None
    segment = life.store.segments[life.store.open_number]
    assert len(segment.parts) == 40
    return segment


def test_the_index_of_a_segment_is_encoded_by_the_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = Life(tmp_path / "log")
    segment = many_queues(life)
    encode, threads = entries.encode_indexes, set()

    def noted(*given: object) -> list[bytes]:
        threads.add(current_thread().name)
        return encode(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(entries, "encode_indexes", noted)
    life.start()
    life.store.roll()
    life.wait(lambda: len(segment.parts) == 20)
    assert threads == {"log-writer"}
    assert segment.end == (life.directory / segment.name).stat().st_size
    life.abandon()
    life.open()
    assert [life.bodies(f"q{number}") for number in range(40)] == [[]] * 20 + [[b"m"]] * 20
    life.abandon()


def test_indexes_are_freed_in_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    life = Life(tmp_path / "log")
    segment = many_queues(life)
    life.write()
    monkeypatch.setattr(slices, "SLICE_S", -1)
    life.store.roll()
    life.store.request()
    left = [40]
    while left[-1]:
        life.store.turned()
        left.append(sum(part.index is not None for part in segment.parts.values()))
    assert max(before - after for before, after in pairwise(left)) <= 2
    life.abandon()
