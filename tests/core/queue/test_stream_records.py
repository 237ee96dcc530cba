"""Reading the records of streams as they lie in the log: places, limits, damage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.core.life import PERSISTENT, Life, numbered
from tests.core.queue.reading import declare, stream
from tests.support.amqp import publish
from tests.support.chunks import Row, chunks, rows
from warrenmq.core.message.stream_read import StreamRead
from warrenmq.core.queue import stream_records
from warrenmq.core.queue.rules import Rules
from warrenmq.core.queue.stream_records import StreamRecordReader
from warrenmq.core.store import stream_records as stored_records

SEGMENT_BYTES = 3_000
MANY_BYTES = 2**20
COUNT = 60


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    life = Life(tmp_path / "log", segment_bytes=SEGMENT_BYTES)
    declare(life)
    life.declare("churn")
    yield life
    life.abandon()


def ask(life: Life, start: int, **more: Any) -> list[StreamRead | None]:
    """Asks for all from an offset on; the list gets what is found."""
    found: list[StreamRead | None] = []
    queue = stream(life)
    wanted: dict[str, Any] = {
        "end": queue.log.end,
        "limit_bytes": MANY_BYTES,
        "done": found.append,
    } | more
    StreamRecordReader(queue, life.store.records).read(start, **wanted)
    return found


def read(life: Life, start: int, **more: Any) -> StreamRead:
    found = ask(life, start, **more)
    life.turns()
    (answer,) = found
    assert answer is not None
    return answer


def read_all(life: Life, start: int = 0, **more: Any) -> list[Row]:
    """Answer after answer, up to the end."""
    found: list[Row] = []
    while start < stream(life).log.end:
        answer = read(life, start, **more)
        assert answer.next_offset > start
        found += [row for row in rows(answer.data) if row.offset >= start]
        start = answer.next_offset
    return found


def fill(life: Life, count: int = COUNT, first: int = 0) -> None:
    """Two messages in each record, over several segments."""
    bodies = numbered(count, first)
    for at in range(0, count, 2):
        life.publish_together(bodies[at : at + 2], "s")
        life.turns(1, each_ms=10)
    life.write()


def churn(life: Life, count: int = 60) -> None:
    """Messages that come and go, until segments from before are compacted."""
    for _ in range(count):
        life.publish(bytes(200), "churn")
        assert life.get("churn") is not None
        life.turns(2, each_ms=10)


def keep(life: Life) -> None:
    """The messages stay in memory."""


def page_out_half(life: Life) -> None:
    life.page_out("s", COUNT * 50)
    assert 0 < stream(life).paged_out_count < COUNT


def restart_and_fill(life: Life) -> None:
    life.restart()
    fill(life, 6, COUNT)


def fill_sparsely(life: Life) -> None:
    """Twelve messages, each with one of another queue in its record, and few in a segment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(life.store.checkpointer._compactor, "begin", lambda before: None)
        for body in numbered(12):
            life.client.feed(
                publish(1, body, PERSISTENT, routing_key="s")
                + publish(1, b"gone", PERSISTENT, routing_key="churn")
            )
            life.turns(2, each_ms=10)
            assert life.get("churn") is not None
            churn(life, 12)


def segments(life: Life) -> set[str]:
    """The files that have the stream's first records."""
    found = chunks(read(life, stream(life).log.first).data)
    return {f"{chunk.location[0]:012d}.log" for chunk in found}


def compact(life: Life) -> None:
    before = segments(life)
    churn(life)
    assert before and not before & set(life.files())


PLACES: list[Callable[[Life], object]] = [
    keep, page_out_half, lambda life: life.page_out("s"), Life.restart, Life.crash,
    restart_and_fill,
]  # fmt: skip
PLACE_IDS = ["memory", "half", "disk", "restart", "crash", "both"]


@pytest.mark.parametrize("place", PLACES, ids=PLACE_IDS)
@pytest.mark.parametrize("start", [0, 1, COUNT // 2 + 1, COUNT - 1])
def test_records_are_read_wherever_they_are(
    life: Life, place: Callable[[Life], object], start: int
) -> None:
    fill(life)
    assert len(life.files()) > 2
    place(life)
    found = read_all(life, start)
    end = stream(life).log.end
    assert [row.offset for row in found] == list(range(start, end))
    assert [row.body for row in found] == numbered(end - start, start)


@pytest.mark.parametrize("is_paged_out", [False, True])
def test_compacted_records(life: Life, is_paged_out: bool) -> None:
    fill_sparsely(life)
    if is_paged_out:
        life.page_out("s")
    before = read(life, 0)
    compact(life)
    assert [(row.offset, row.body) for row in read_all(life)] == list(enumerate(numbered(12)))
    after = read(life, 0)
    assert before.data != after.data and before.checksum != after.checksum
    assert read(life, 0).checksum == after.checksum


def test_answer_is_bounded_in_records(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_records, "RECORDS_MAX", 3)
    monkeypatch.setattr(stream_records, "CHUNKS_MAX", 7)
    fill(life)
    page_out_half(life)
    assert read(life, 1).next_offset == 6
    assert [row.body for row in read_all(life)] == numbered(COUNT)


def test_answer_is_bounded_in_bytes(life: Life) -> None:
    fill(life)
    assert len(read(life, 0, limit_bytes=1).data) == len(read(life, 0, end=1).data)
    assert len(read(life, 0, limit_bytes=1_000).data) <= 1_000
    assert [row.body for row in read_all(life, limit_bytes=1_000)] == numbered(COUNT)


def measure(life: Life, start: int, limit_bytes: int) -> int:
    found: list[int | None] = []
    reader = StreamRecordReader(stream(life), life.store.records)
    reader.measure(start, limit_bytes, found.append)
    life.turns()
    (limit,) = found
    assert limit is not None
    return limit


@pytest.mark.parametrize("place", PLACES, ids=PLACE_IDS)
def test_a_limit_in_bytes(life: Life, place: Callable[[Life], object]) -> None:
    """The records up to it have as many bytes, if there is more than one."""
    fill(life)
    place(life)
    end = stream(life).log.end
    start, limits = 0, []
    while start < end:
        limit = measure(life, start, 1_000)
        assert start < limit <= end
        data = read(life, start, end=limit).data
        assert len(data) <= 1_000 and rows(data)[-1].offset == limit - 1
        limits.append(limit)
        start = limit
    assert len(limits) < end // 2


@pytest.mark.parametrize("limit_bytes", [1, 1_000, 2_000, 10**6])
def test_a_limit_behind_many_chunks(
    life: Life, monkeypatch: pytest.MonkeyPatch, limit_bytes: int
) -> None:
    """Of which one turn measures a few: the limit is that of measuring all at once."""
    fill(life)
    page_out_half(life)
    starts = range(0, COUNT, 5)
    at_once = [measure(life, start, limit_bytes) for start in starts]
    monkeypatch.setattr(stream_records, "CHUNKS_MAX", 3)
    assert [measure(life, start, limit_bytes) for start in starts] == at_once
    monkeypatch.setattr(stream_records, "ROUNDS_MAX", 2)
    assert all(start < measure(life, start, limit_bytes) <= COUNT for start in starts)
    assert measure(life, 0, 10**6) < COUNT


# Messages of others


@pytest.mark.parametrize("alike", [False, True])
@pytest.mark.parametrize("is_paged_out", [False, True])
def test_messages_of_other_queues_are_left_out(life: Life, alike: bool, is_paged_out: bool) -> None:
    """Of a read with messages for two queues, in frames that are alike or not."""
    names = ["s", "o"] if alike else ["s", "other"]
    life.declare(names[1])
    sent = [
        publish(1, b"%s-%02d" % (names[at % 3 > 0].encode(), at), PERSISTENT,
                routing_key=names[at % 3 > 0])
        for at in range(30)
    ]  # fmt: skip
    life.client.feed(b"".join(sent))
    life.write()
    if is_paged_out:
        life.page_out("s")
    answer = read(life, 0)
    assert [row.body for row in rows(answer.data)] == [b"s-%02d" % at for at in range(0, 30, 3)]
    (chunk,) = chunks(answer.data)
    assert chunk.copied and chunk.shares == [((stream(life).id,), 0)]
    assert names[1].encode() + b"-" not in answer.data


def test_blind_copies_are_left_out(life: Life) -> None:
    life.declare("secret")
    headers = {"delivery_mode": 2, "headers": {"BCC": ["secret"], "CC": ["known"]}}
    life.publish(b"m", "s", headers)
    life.write()
    answer = read(life, 0)
    (row,) = rows(answer.data)
    assert row.body == b"m" and b"known" in row.properties
    assert b"secret" not in answer.data


def test_shared_records_are_sent_without_a_copy(life: Life) -> None:
    life.declare("twin", arguments={"x-queue-type": "stream"})
    for queue in ("s", "twin"):
        life.client.call("Queue.Bind", queue=queue, exchange="amq.fanout", routing_key="")
    life.publish_together(numbered(5), exchange="amq.fanout")
    life.write()
    (chunk,) = chunks(read(life, 0).data)
    assert not chunk.copied and [row.body for row in chunk.rows] == numbered(5)
    log = (life.directory / f"{chunk.location[0]:012d}.log").read_bytes()
    assert log[chunk.location[1] :].startswith(b"\xa5W")


# Between looking and reading


def asked_before(life: Life, meanwhile: Callable[[], None], start: int = 0) -> StreamRead | None:
    """Asks for records, which are looked for at once, and lets the worker read them only after
    something else."""
    jobs: list[tuple[Any, Any]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(life.store.worker, "run", lambda job, done: jobs.append((job, done)))
        found = ask(life, start)
    meanwhile()
    for job, done in jobs:
        life.store.worker.run(job, done)
    life.turns()
    (answer,) = found
    return answer


@pytest.mark.parametrize("is_paged_out", [False, True])
def test_records_are_compacted_before_the_read(life: Life, is_paged_out: bool) -> None:
    fill_sparsely(life)
    if is_paged_out:
        life.page_out("s")
    answer = asked_before(life, lambda: compact(life))
    assert answer is not None
    assert [row.body for row in rows(answer.data)] == numbered(12)


def test_records_are_dropped_before_the_read(life: Life) -> None:
    fill(life)

    def drop() -> None:
        before = segments(life)
        stream(life).apply(Rules(max_length_bytes=1_000))
        life.write()
        churn(life)
        assert before - set(life.files())

    assert asked_before(life, drop) is None
    first = stream(life).log.first
    assert 0 < first < COUNT
    assert [row.body for row in read_all(life, first)] == numbered(COUNT - first, first)


def test_stream_is_deleted_before_the_read(life: Life) -> None:
    fill(life)

    def delete() -> None:
        before = segments(life)
        life.client.call("Queue.Delete", queue="s")
        churn(life)
        assert not before & set(life.files())

    assert asked_before(life, delete) is None


# What can't be read


def damage(life: Life, offset: int) -> None:
    """Changes an octet of the record that has the message at an offset of the stream."""
    (chunk,) = chunks(read(life, offset, end=offset + 1).data)
    segment, at = chunk.location
    with (life.directory / f"{segment:012d}.log").open("r+b") as file:
        file.seek(at + 60)
        (octet,) = file.read(1)
        file.seek(at + 60)
        file.write(bytes((octet ^ 1,)))


@pytest.mark.parametrize("place", PLACES[:4], ids=PLACE_IDS[:4])
def test_damaged_records(life: Life, place: Callable[[Life], object]) -> None:
    """What is before them is sent, then that they can't be read, unless they are to be skipped."""
    fill(life)
    place(life)
    for offset in (10, 12, 20):
        damage(life, offset)
    before = read(life, 3)
    assert (before.first, before.next_offset) == (2, 10)
    assert [row.offset for row in rows(before.data)] == list(range(2, 10))
    assert read(life, 10) == StreamRead(10, 14, [])
    assert read(life, 13) == StreamRead(12, 14, [])
    rest = read(life, 13, skip_damaged=True)
    assert (rest.first, rest.next_offset) == (14, COUNT)
    wanted = [*range(14, 20), *range(22, COUNT)]
    assert [row.offset for row in rows(rest.data)] == wanted
    assert read(life, 12, end=14, skip_damaged=True) == StreamRead(12, 14, [])
    assert life.store.recovered.unreadable


def test_a_missing_file_is_not_waited_for(life: Life) -> None:
    fill(life)
    life.page_out("s")
    (chunk, *_) = chunks(read(life, 0).data)
    life.store.paging.reader.forget(chunk.location[0])
    (life.directory / f"{chunk.location[0]:012d}.log").unlink()
    answer = read(life, 0)
    assert not answer.data and 0 < answer.next_offset <= COUNT


# By time


def test_first_message_since_a_time_is_found(life: Life) -> None:
    """By the times of the records; what is damaged is passed over."""
    for body in numbered(8):
        life.publish(body, "s")
        life.clock.advance(1_000)
    life.write()
    times = [chunk.arrived_ms for chunk in chunks(read(life, 0).data)]
    moments = {times[0] - 1: 0, times[3]: 3, times[3] + 1: 4, times[7]: 7, times[7] + 1: 8}
    assert {moment: since(life, moment) for moment in moments} == moments
    damage(life, 3)
    assert since(life, times[3]) in (3, 4)
    assert since(life, times[2]) == 2
    damage(life, 7)
    assert since(life, times[6] + 1) in (7, 8)


def since(life: Life, wall_ms: int) -> int:
    found: list[int] = []
    reader = StreamRecordReader(stream(life), life.store.records)
    reader.find_moment(wall_ms, found.append)
    life.turns(20)
    (offset,) = found
    return offset
