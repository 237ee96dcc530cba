"""What survives in old segments is moved together, and the old segments go."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.core.life import PERSISTENT, Life, numbered
from tests.support.amqp import method, publish
from warrenmq.core.message.batch import PagedOut
from warrenmq.core.store.record import COLD, FILE_HEADER_BYTES, read_file_header
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
        if read_file_header(name, raw).kind == COLD:
            found.append(name)
    return found


def unmoved(life: Life) -> set[str]:
    return set(life.files()) - set(moved_files(life))


def churn(life: Life, count: int = 10, size: int = 200) -> None:
    """One in, one out."""
    for _ in range(count):
        life.publish(bytes(size), "churn")
        assert life.get("churn") is not None
        life.turns(2, each_ms=10)


def scatter(life: Life, count: int, *, each: int = 1, moves: bool = False) -> None:
    """Messages that stay, then so many that don't: `each` survivors in another segment."""
    compactor = life.store._checkpointer._compactor
    if not moves:
        compactor.begin = lambda before: None  # type: ignore[method-assign]
    for number, body in enumerate(numbered(count), start=1):
        life.publish(body, "kept")
        if number % each == 0:
            churn(life, 20, size=40)
    compactor.__dict__.pop("begin", None)


# -- what becomes of the files


def test_one_in_one_out_needs_few_files(tmp_path: Path) -> None:
    life = Life(tmp_path / "log", segment_bytes=1_200)
    life.declare("churn")
    first = life.store.open_number
    largest = 0
    for _ in range(250):
        churn(life, 4)
        largest = max(largest, len(life.files()))
    assert life.store.open_number - first > 200
    assert largest <= 5
    assert life.disk_bytes < 8 * 1_200
    assert len(life.files(".state")) <= 2
    life.abandon()


def test_one_in_one_out_without_confirms_or_waiting(life: Life) -> None:
    life.client.consume("churn", no_ack=True)
    first = life.store.open_number
    for _ in range(400):
        life.client.publish(bytes(200), PERSISTENT, routing_key="churn")
        life.turns(2, each_ms=10)
    life.client.come()
    assert life.store.open_number - first > 20
    assert len(life.files()) <= 5


def test_one_survivor_pins_nothing(life: Life) -> None:
    life.publish(b"dead letter", "kept")
    before = unmoved(life)
    churn(life, 100)
    assert not before & set(life.files())
    assert len(life.files()) <= 6
    life.crash()
    assert life.bodies("kept") == [b"dead letter"]


def test_survivors_of_many_segments_are_moved_together(life: Life) -> None:
    scatter(life, 12)
    assert len(life.files()) >= 12
    churn(life, 60)
    assert len(life.files()) <= 6
    life.crash()
    assert life.bodies("kept") == numbered(12)


def test_a_stream_of_survivors_is_moved_again(life: Life) -> None:
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


def test_what_is_more_than_a_quarter_alive_stays(life: Life) -> None:
    for body in numbered(30):
        life.publish(body * 20, "kept")
    before = set(life.files()[:3])
    churn(life, 100)
    assert before <= set(life.files())
    assert moved_files(life) == []


# -- what becomes of the messages


def test_entries_in_memory_go_on(life: Life) -> None:
    """Half of each read is settled before the move, then one by one behind it."""
    data = b"".join(publish(1, body, PERSISTENT, routing_key="kept") for body in numbered(40))
    life.client.feed(data)
    for _ in range(34):
        life.get("kept")
    before = unmoved(life)
    churn(life, 60)
    assert not before & set(life.files())
    for body in numbered(3, 34):
        found = life.get("kept", ack=True)
        assert found is not None
        assert (found.body, found["redelivered"]) == (body, False)
    life.write()
    life.crash()
    assert life.bodies("kept") == numbered(3, 37)


@pytest.mark.parametrize("sizes", [(6,), (3, 6, 90)], ids=["alike", "different"])
def test_evicted_entries_are_read_at_their_new_place(life: Life, sizes: tuple[int, ...]) -> None:
    bodies = [b"%0*d" % (sizes[number % len(sizes)], number) for number in range(40)]
    life.client.feed(b"".join(publish(1, body, PERSISTENT, routing_key="kept") for body in bodies))
    life.client.consume("kept", "c")
    kept = [3, 4, 5, 17, 39]
    for tag in range(1, 41):
        if tag - 1 not in kept:
            life.client.send("Basic.Ack", delivery_tag=tag)
    before = unmoved(life)
    churn(life, 60)
    assert not before & set(life.files())
    for connection in life.broker.connections:
        for messages in connection.channels[1].unacked.ranges():
            assert life.store.evict(messages.entry.batch)
    life.client.send("Basic.Ack", delivery_tag=5)
    life.client.call("Basic.Cancel", consumer_tag="c")
    life.client.send("Basic.Nack", delivery_tag=0, multiple=True, requeue=True)
    assert life.drain("kept") == [(bodies[number], True) for number in kept if number != 4]


def test_every_piece_of_a_moved_run_can_be_settled(life: Life) -> None:
    data = b"".join(publish(1, body, PERSISTENT, routing_key="kept") for body in numbered(40))
    life.client.feed(data)
    life.client.consume("kept", "c")
    kept = [3, 4, 5, 17, 39]
    for number in set(range(40)) - set(kept):
        life.client.send("Basic.Ack", delivery_tag=number + 1)
    before = unmoved(life)
    churn(life, 60)
    assert not before & set(life.files())
    for number in (4, 17):
        life.client.send("Basic.Ack", delivery_tag=number + 1)
    churn(life, 30)
    life.crash()
    assert life.drain("kept") == [(b"%06d" % number, True) for number in (3, 5, 39)]


def test_paged_out_messages_are_read_at_their_new_place(life: Life) -> None:
    scatter(life, 5)
    life.page_out("kept")
    assert life.queue("kept").paged_out_count == 5
    before = unmoved(life)
    churn(life, 60)
    assert not before & set(life.files())
    assert life.bodies("kept") == numbered(5)


def test_two_queues_with_different_shares(life: Life) -> None:
    life.declare("other")
    for name in ("kept", "other"):
        life.client.call("Queue.Bind", queue=name, exchange="amq.fanout")
    data = b"".join(publish(1, body, PERSISTENT, exchange="amq.fanout") for body in numbered(40))
    life.client.feed(data)
    for _ in range(35):
        life.get("kept")
    for _ in range(38):
        life.get("other")
    before = unmoved(life)
    churn(life, 60)
    assert not before & set(life.files())
    life.page_out("other")
    life.crash()
    assert life.bodies("kept") == numbered(5, 35)
    assert life.bodies("other") == numbered(2, 38)


def test_messages_with_a_time_of_their_own_keep_it(life: Life) -> None:
    life.publish(b"special", "kept", {"delivery_mode": 2, "expiration": "600000"})
    before = unmoved(life)
    churn(life, 60)
    assert not before & set(life.files())
    life.crash()
    assert life.queue("kept").ready_count == 1
    life.turns(2, each_ms=600_000)
    assert life.queue("kept").ready_count == 0


def test_the_redelivered_flag_moves_along(life: Life) -> None:
    scatter(life, 3)
    assert life.get("kept", ack=False) is not None
    life.restart()
    before = unmoved(life)
    churn(life, 60)
    assert not before & set(life.files())
    life.restart()
    assert life.drain("kept") == [(b"000000", True), (b"000001", False), (b"000002", False)]


def test_what_may_have_been_delivered_is_flagged_after_move_and_crash(life: Life) -> None:
    life.client.consume("kept", "c")
    scatter(life, 3)
    life.crash()
    before = unmoved(life)
    churn(life, 60)
    assert not before & set(life.files())
    life.crash()
    assert life.drain("kept") == [(body, True) for body in numbered(3)]


# -- while a copy is under way


class Paused:
    """A compaction whose copy is made and not switched to until `go_on`."""

    def __init__(self, life: Life) -> None:
        self._life = life
        self._keeper = life.store._checkpointer
        self._compactor = self._keeper._compactor
        self._keeper._compactor = self  # type: ignore[assignment]
        self.begin = self._compactor.begin
        self.finish = self._compactor.finish

    @property
    def is_busy(self) -> bool:
        return self._compactor.is_busy

    def work(self) -> bool:
        return not self._compactor.is_ready and self._compactor.work()

    def copy(self) -> None:
        for _ in range(30):
            churn(self._life, 5)
            if self._compactor.is_ready:
                return
        raise AssertionError("nothing is compacted")

    def go_on(self) -> None:
        self._keeper._compactor = self._compactor
        while self._compactor.is_ready or self._compactor.is_busy:
            self._life.turns(1, each_ms=10)


Step = Callable[[Life], None]


def page_out(life: Life) -> None:
    life.page_out("kept")


def ask(life: Life) -> None:
    """Somebody wants the oldest message, which is on its way from now on."""
    life.broker.tick()
    life.queue("kept").get(lambda: None)


def get(life: Life) -> None:
    assert life.get("kept") is not None


def take(life: Life) -> None:
    assert life.get("kept", ack=False) is not None


def requeue(life: Life) -> None:
    life.client.send("Basic.Nack", delivery_tag=0, multiple=True, requeue=True)


def purge(life: Life) -> None:
    life.client.send("Queue.Purge", queue="kept")


ACTIONS: dict[str, tuple[list[Step], list[int]]] = {
    "nothing": ([], [0, 1, 2, 3]),
    "settled": ([get, get], [2, 3]),
    "one settled": ([get], [1, 2, 3]),
    "all settled": ([get] * 4, []),
    "purged": ([purge], []),
    "cold": ([page_out], [0, 1, 2, 3]),
    "cold and purged": ([page_out, purge], []),
    "cold and one read": ([page_out, get], [1, 2, 3]),
    "on the way": ([page_out, ask], [0, 1, 2, 3]),
    "requeued": ([take, get, requeue], [0, 2, 3]),
    "unacked": ([take, take], [0, 1, 2, 3]),
}


@pytest.mark.parametrize(
    ("paged_out", "each"),
    [(False, 1), (False, 2), (True, 2)],
    ids=["resident", "two resident", "was paged out"],
)
@pytest.mark.parametrize("end", ["switched", "crash before", "crash behind", "checkpoint"])
@pytest.mark.parametrize("what", list(ACTIONS))
def test_while_a_copy_is_under_way(
    life: Life, what: str, end: str, paged_out: bool, each: int
) -> None:
    scatter(life, 4, each=each)
    if paged_out:
        life.page_out("kept")
    paused = Paused(life)
    paused.copy()
    steps, left = ACTIONS[what]
    for step in steps:
        step(life)
    if end == "crash before":
        life.write()
        life.crash()
    else:
        paused.go_on()
        if end == "crash behind":
            life.write()
            life.crash()
        elif end == "checkpoint":
            churn(life, 60)
            life.crash()
    life.client.send("Basic.Nack", delivery_tag=0, multiple=True, requeue=True)
    assert life.queue("kept").ready_count == len(left)
    assert life.bodies("kept") == [b"%06d" % number for number in left]
    life.write()
    life.crash()
    assert life.bodies("kept") == []


def test_a_part_of_an_entry_is_settled_while_a_copy_is_under_way(life: Life) -> None:
    data = b"".join(publish(1, body, PERSISTENT, routing_key="kept") for body in numbered(40))
    life.client.feed(data)
    for _ in range(35):
        get(life)
    paused = Paused(life)
    paused.copy()
    get(life)
    get(life)
    paused.go_on()
    churn(life, 60)
    get(life)
    life.write()
    life.crash()
    assert life.bodies("kept") == numbered(2, 38)


def test_the_queue_ends_while_a_copy_is_under_way(life: Life) -> None:
    scatter(life, 4)
    paused = Paused(life)
    paused.copy()
    life.client.call("Queue.Delete", queue="kept")
    life.declare("kept")
    life.publish(b"new", "kept")
    paused.go_on()
    churn(life, 60)
    assert len(life.files()) <= 6
    life.crash()
    assert life.bodies("kept") == [b"new"]


@pytest.mark.parametrize("stage", ["copied", "switched", "listed"])
def test_a_crash_at_each_stage_and_at_the_next_start(
    life: Life, stage: str, tmp_path: Path
) -> None:
    """What a crash leaves is started from twice, and moved and crashed again."""
    scatter(life, 4)
    paused = Paused(life)
    paused.copy()
    if stage != "copied":
        paused.go_on()
    if stage == "listed":
        churn(life, 12)
    assert moved_files(life)
    life.write()
    copy = tmp_path / "copy"
    shutil.copytree(life.directory, copy)
    for directory in (life.directory, copy):
        again = Life(directory, segment_bytes=SEGMENT_BYTES)
        assert again.queue("kept").ready_count == 4
        again.crash()
        churn(again, 60)
        assert len(again.files()) <= 6
        again.crash()
        assert again.bodies("kept") == numbered(4)


def test_a_copy_that_nobody_took_over_goes(life: Life) -> None:
    scatter(life, 4)
    paused = Paused(life)
    paused.copy()
    (orphan,) = moved_files(life)[-1:]
    life.crash()
    churn(life, 60)
    assert orphan not in life.files()
    assert life.bodies("kept") == numbered(4)


def test_paged_out_ranges_stay_whole(life: Life) -> None:
    scatter(life, 8)
    life.page_out("kept")
    churn(life, 60)
    life.restart()
    parts = list(life.classic("kept").backlog)
    assert all(isinstance(part, PagedOut) for part in parts)
    assert sum(part.count for part in parts) == 8
    assert life.bodies("kept") == numbered(8)


@pytest.mark.parametrize("end", ["Queue.Purge", "Queue.Delete"])
def test_the_end_of_a_range_settles_nothing_that_was_moved_into_it(life: Life, end: str) -> None:
    """A message that is unacknowledged stands between two that are paged out, since the second
    move."""
    life.declare("ranked", arguments={"x-max-priority": 5})
    for name in ("pad", "large", "other"):
        life.declare(name)
    compactor = life.store._checkpointer._compactor
    compactor.begin = lambda before: None  # type: ignore[method-assign]
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
    compactor.__dict__.pop("begin")
    taken = life.get("ranked", ack=False)
    assert taken is not None and taken.body == b"taken"
    churn(life, 60)
    life.page_out("ranked")
    (paged_out,) = [held for held in life.classic("ranked").backlog if isinstance(held, PagedOut)]
    compactor.begin = lambda before: None  # type: ignore[method-assign]
    for name in ("pad", "large"):
        life.bodies(name)
    compactor.__dict__.pop("begin")
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
