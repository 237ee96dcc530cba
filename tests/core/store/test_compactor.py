"""Compaction: unsettled messages of old segments are moved together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from tests.core.life import PERSISTENT, Life, numbered
from tests.support.amqp import method
from warrenmq.core.message.queue_entry import PagedOut
from warrenmq.core.store.compactor import Compactor
from warrenmq.core.store.record import FILE_HEADER_BYTES, KIND_COMPACTED, read_file_header
from warrenmq.core.store.segment_part import PagedOutLocation

SEGMENT_BYTES = 3_000


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    found = Life(tmp_path / "log", segment_bytes=SEGMENT_BYTES)
    found.declare("churn")
    found.declare("kept")
    yield found
    found.abandon()


def moved_files(life: Life) -> list[str]:
    """Files that a move made."""
    found = []
    for name in life.files():
        raw = (life.directory / name).read_bytes()[:FILE_HEADER_BYTES]
        if read_file_header(name, raw).kind == KIND_COMPACTED:
            found.append(name)
    return found


def unmoved(life: Life) -> set[str]:
    return set(life.files()) - set(moved_files(life))


def compact(life: Life) -> None:
    """Publishes and takes messages until no segment from before is left, but moved ones."""
    before = unmoved(life)
    churn(life, 60)
    assert not before & set(life.files())


def churn(life: Life, count: int = 10, size: int = 200) -> None:
    """One in, one out."""
    for _ in range(count):
        life.publish(bytes(size), "churn")
        assert life.get("churn") is not None
        life.turns(2, each_ms=10)


def scatter(life: Life, count: int, *, each: int = 1, moves: bool = False) -> None:
    """Messages that stay, then so many that don't: `each` survivors in another segment."""
    with nullcontext() if moves else uncompacted(life):
        for number, body in enumerate(numbered(count), start=1):
            life.publish(body, "kept")
            if number % each == 0:
                churn(life, 20, size=40)


@contextmanager
def uncompacted(life: Life) -> Iterator[None]:
    """Begins no compaction."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Compactor, "begin", lambda compactor, before: None)
        yield


# -- what becomes of the files


def test_short_lived_messages_need_few_files(tmp_path: Path) -> None:
    life = Life(tmp_path / "log", segment_bytes=1_200)
    life.declare("churn")
    first = life.store.log.open_number
    largest = 0
    for _ in range(250):
        churn(life, 4)
        largest = max(largest, len(life.files()))
    assert life.store.log.open_number - first > 200
    assert largest <= 5
    assert life.disk_bytes < 8 * 1_200
    assert len(life.files(".state")) <= 2
    life.abandon()


def test_unconfirmed_short_lived_messages_need_few_files(life: Life) -> None:
    life.client.consume("churn", no_ack=True)
    first = life.store.log.open_number
    for _ in range(400):
        life.client.publish(bytes(200), PERSISTENT, routing_key="churn")
        life.turns(2, each_ms=10)
    life.client.come()
    assert life.store.log.open_number - first > 20
    assert len(life.files()) <= 5


def test_one_unsettled_message_does_not_keep_a_segment(life: Life) -> None:
    life.publish(b"dead letter", "kept")
    before = unmoved(life)
    churn(life, 100)
    assert not before & set(life.files())
    assert len(life.files()) <= 6
    life.crash()
    assert life.bodies("kept") == [b"dead letter"]


def test_messages_of_many_segments_are_moved_together(life: Life) -> None:
    scatter(life, 12)
    assert len(life.files()) >= 12
    churn(life, 60)
    assert len(life.files()) <= 6
    life.crash()
    assert life.bodies("kept") == numbered(12)


def test_moved_messages_are_moved_again(life: Life) -> None:
    scatter(life, 60, moves=True)
    assert len(life.files()) <= 25
    first = moved_files(life)
    assert first
    life.client.consume("kept", no_ack=False)
    tags = [reply["delivery_tag"] for reply in life.client.replies if reply.body]
    life.client.feed(b"".join(method(1, "Basic.Ack", delivery_tag=tag) for tag in tags[:59]))
    churn(life, 100)
    assert len(set(first) & set(life.files())) <= 1
    assert len(life.files()) <= 6
    life.crash()
    assert life.bodies("kept") == numbered(1, 59)


def test_a_damaged_record_keeps_only_its_own_segment(life: Life) -> None:
    scatter(life, 12)
    life.stop()
    before = unmoved(life)
    (damaged,) = (name for name in before if b"000004" in (life.directory / name).read_bytes())
    path = life.directory / damaged
    path.write_bytes(path.read_bytes().replace(b"000004", b"00000?"))
    life.open()
    for _ in range(2):
        life.restart()
        churn(life, 60)
    assert before & set(life.files()) == {damaged}
    assert life.bodies("kept") == [body for body in numbered(12) if body != b"000004"]


def test_segment_with_more_than_a_quarter_unsettled_is_kept(life: Life) -> None:
    for body in numbered(30):
        life.publish(body * 20, "kept")
    before = set(life.files()[:3])
    churn(life, 100)
    assert before <= set(life.files())
    assert moved_files(life) == []


# -- what becomes of the messages


@pytest.mark.parametrize("sizes", [(6,), (3, 6, 90)], ids=["alike", "different"])
def test_evicted_entries_are_read_at_their_new_place(life: Life, sizes: tuple[int, ...]) -> None:
    bodies = [b"%0*d" % (sizes[number % len(sizes)], number) for number in range(40)]
    life.publish_together(bodies, "kept")
    life.client.consume("kept", "c")
    kept = [3, 4, 5, 17, 39]
    for tag in range(1, 41):
        if tag - 1 not in kept:
            life.client.send("Basic.Ack", delivery_tag=tag)
    compact(life)
    for connection in life.broker.connections:
        for messages in connection.unacked():
            assert life.store.batches.evict(messages.entry.batch)
    life.client.send("Basic.Ack", delivery_tag=5)
    life.client.call("Basic.Cancel", consumer_tag="c")
    life.client.send("Basic.Nack", delivery_tag=0, multiple=True, requeue=True)
    assert life.drain("kept") == [(bodies[number], True) for number in kept if number != 4]


# -- while a copy is under way


def test_possible_deliveries_are_flagged_after_move_and_crash(life: Life) -> None:
    life.client.consume("kept", "c")
    scatter(life, 3)
    life.crash()
    compact(life)
    life.crash()
    assert life.drain("kept") == [(body, True) for body in numbered(3)]


def test_compaction_does_not_split_paged_out_ranges(life: Life) -> None:
    scatter(life, 8)
    life.page_out("kept")
    churn(life, 60)
    life.restart()
    parts = list(life.classic("kept").backlog)
    assert all(isinstance(part, PagedOut) for part in parts)
    assert sum(part.count for part in parts) == 8
    assert life.bodies("kept") == numbered(8)


@pytest.mark.parametrize("end", ["Queue.Purge", "Queue.Delete"])
def test_discarding_a_range_settles_no_message_moved_into_it(life: Life, end: str) -> None:
    """A message that is unacknowledged stands between two that are paged out, since the second
    move."""
    life.declare("ranked", arguments={"x-max-priority": 5})
    for name in ("pad", "large", "other"):
        life.declare(name)
    with uncompacted(life):
        for number in range(8):
            life.publish(b"%d" % number, "ranked" if number in (0, 7) else "pad")
            life.publish(b"padding", "pad")
            churn(life, 30, size=40)
            if number == 0:
                life.publish(b"taken", "ranked", {"delivery_mode": 2, "priority": 5})
                life.publish(b"other", "other")
                for large in numbered(10, size=200):
                    life.publish(large, "large")
                churn(life, 20)
    taken = life.get("ranked", ack=False)
    assert taken is not None and taken.body == b"taken"
    churn(life, 60)
    life.page_out("ranked")
    (paged_out,) = [held for held in life.classic("ranked").backlog if isinstance(held, PagedOut)]
    with uncompacted(life):
        for name in ("pad", "large"):
            life.bodies(name)
    churn(life, 60)
    location = paged_out.location
    assert isinstance(location, PagedOutLocation)
    assert (paged_out.count, location.high - location.low, len(location.part.entries)) == (2, 3, 1)
    life.client.send(end, queue="ranked")
    life.write()
    life.crash()
    assert life.bodies("other") == [b"other"]
    if end == "Queue.Purge":
        assert life.drain("ranked") == [(b"taken", True)]
