"""Retention of streams by size, age and count, and its cost."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.core.life import PERSISTENT, Life, numbered
from tests.core.queue.reading import Reading, declare, fill, stream
from tests.support.amqp import publish
from warrenmq.core import slices
from warrenmq.core.message.model import Table
from warrenmq.core.message.queue_entry import PagedOut
from warrenmq.core.queue import retention, stream_dropping
from warrenmq.core.queue.rules import Rules
from warrenmq.core.store import paged_out_ranges
from warrenmq.core.store.browser import LogBrowser
from warrenmq.core.store.paged_out_ranges import PagedOutRanges
from warrenmq.core.store.record import Record, RecordKind, scan


def records(life: Life, kind: RecordKind) -> int:
    """How many records of a kind were written."""
    life.write()
    found = 0
    for name in life.files():
        data = memoryview((life.directory / name).read_bytes())
        for record in scan(int(name.removesuffix(".log")), data):
            found += isinstance(record, Record) and record.kind == kind
    return found


def left(life: Life) -> int:
    """How many messages the store keeps."""
    return sum(segment.unsettled for segment in life.store.log.segments.values())


# -- by size


def test_a_range_is_dropped_from_its_front(life: Life) -> None:
    declare(life, max_length_bytes=20_000)
    for body in numbered(120):
        fill(life, [body])
    assert stream(life).log.first == 0
    life.restart()
    fill(life, numbered(100, 120))
    log = stream(life).log
    assert 15_000 < log.size_bytes <= 20_000
    assert isinstance(next(iter(log.chunks)).content, PagedOut)
    assert Reading(life, "first").bodies() == numbered(220)[log.first :]
    life.crash()
    assert stream(life).log.first == log.first
    assert Reading(life, "first").offsets() == list(range(log.first, 220))


@pytest.mark.parametrize("mixed", [True, False])
def test_its_size_is_the_same_after_a_restart(life: Life, mixed: bool) -> None:
    declare(life)
    life.declare("q")
    for body in numbered(20):
        read = publish(1, body, PERSISTENT, routing_key="s")
        other = publish(1, b"x" * 6, PERSISTENT, routing_key="q")
        life.client.feed((read + other if mixed else read) * 10)
    life.write()
    size = stream(life).log.size_bytes
    life.page_out("s", 100)
    assert stream(life).log.size_bytes == size
    life.restart()
    assert not stream(life).log.compute_sizes(lambda: None)
    life.turns()
    assert stream(life).log.size_bytes == size
    wire = 200 * len(publish(1, numbered(1)[0], PERSISTENT, routing_key="s"))
    assert wire < size < 1.5 * wire


def test_drops_are_batched(life: Life) -> None:
    declare(life, max_length_bytes=64_000)
    fill(life, numbered(800))
    dropped = stream(life).log.first
    before = records(life, RecordKind.DEFINITION)
    fill(life, numbered(400, 800))
    assert stream(life).log.first >= dropped + 390
    assert records(life, RecordKind.DEFINITION) - before < 80


def test_no_index_is_read_unless_there_is_a_limit(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(life)
    fill(life, numbered(20))
    weighed: list[PagedOut] = []
    plain = PagedOutRanges.weigh

    def weigh(self: PagedOutRanges, paged_out: PagedOut) -> Generator[slices.Pause, None, int]:
        weighed.append(paged_out)
        return plain(self, paged_out)

    monkeypatch.setattr(PagedOutRanges, "weigh", weigh)
    life.restart()
    fill(life, numbered(20, 20))
    assert Reading(life, "first").bodies() == numbered(40)
    life.page_out("s")
    assert not weighed
    stream(life).apply(Rules(max_length_bytes=1_000))
    life.turns()
    assert len(weighed) == 1
    assert stream(life).log.first > 20


def test_limit_of_0_keeps_the_last_chunk(life: Life) -> None:
    declare(life, max_length_bytes=0)
    fill(life, numbered(5))
    assert Reading(life, "first").bodies() == [b"000004"]


# -- in slices


@pytest.mark.parametrize("is_paged_out", [False, True])
def test_very_many_are_dropped_in_slices(
    life: Life, monkeypatch: pytest.MonkeyPatch, *, is_paged_out: bool
) -> None:
    declare(life)
    count = 500
    for body in numbered(count):
        life.client.publish(body, PERSISTENT, routing_key="s")
    if is_paged_out:
        life.restart()
    fill(life, [b"%06d" % count])
    monkeypatch.setattr(slices, "SLICE_S", -1)
    monkeypatch.setattr(slices, "SHORT_STEPS", 1)
    stream(life).apply(Rules(max_length_bytes=0))
    kept = [left(life)]
    while kept[-1] > count // 2:
        life.broker.turn()
        kept.append(left(life))
        assert (
            kept[-2] - kept[-1]
            <= paged_out_ranges.DISCARDED_AT_ONCE * stream_dropping.STEPS_AT_ONCE
        )
    life.store.flush()
    life.crash()
    assert stream(life).log.first == count + 1 - kept[-1]
    reading = Reading(life, "first")
    assert [b"%06d" % offset for offset in reading.offsets()] == reading.bodies()


# -- by age


def test_age_of_an_idle_stream_counts_over_a_restart(life: Life) -> None:
    declare(life, max_age="1h")
    for body in numbered(5):
        fill(life, [body])
        life.store.log.roll()
        life.clock.advance(600_000)
    life.restart()
    assert all(isinstance(piece.content, PagedOut) for piece in stream(life).log.chunks)
    for _ in range(10):
        life.turns(3, each_ms=120_000)
    assert stream(life).log.first == 4


def test_the_age_of_a_range_is_read_only_once(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(life, max_age="1h")
    fill(life, numbered(5))
    life.restart()
    begun: list[int] = []
    plain = LogBrowser.browse

    def browse(self: LogBrowser, paged_out: PagedOut, position: int, ready: object) -> None:
        begun.append(position)
        plain(self, paged_out, position, ready)  # type: ignore[arg-type]

    monkeypatch.setattr(LogBrowser, "browse", browse)
    life.client.connection.receive(publish(1, b"new", PERSISTENT, routing_key="s"))
    for _ in range(10):
        life.client.connection.receive(publish(1, b"new", PERSISTENT, routing_key="s"))
    life.turns()
    fill(life, numbered(5))
    assert len(begun) <= 1
    assert next(iter(stream(life).log.chunks)).newest_ms is not None


def test_range_of_unreadable_age_is_kept(life: Life) -> None:
    declare(life, max_age="1h")
    fill(life, numbered(5))
    life.stop()
    for name in life.files():
        path = life.directory / name
        path.write_bytes(path.read_bytes().replace(b"00000", b"00001"))
    life.open()
    fill(life, [b"new"])
    life.turns(10, each_ms=60_000)
    assert stream(life).log.first == 0
    life.turns(10, each_ms=600_000)
    assert stream(life).log.first == 5


# -- by count, for exchanges


def test_drops_by_count_are_batched(life: Life) -> None:
    arguments: Table = {"x-persist-messages": 640}
    life.client.call(
        "Exchange.Declare", exchange="x", exchange_type="fanout", durable=True, arguments=arguments
    )
    for body in numbered(700):
        life.client.publish(body, PERSISTENT, exchange="x")
    before = records(life, RecordKind.DEFINITION)
    for body in numbered(100):
        life.client.publish(body, PERSISTENT, exchange="x")
    (kept,) = life.broker.vhosts["/"].inner_queues.values()
    assert 640 <= kept.ready_count <= 640 + 640 // retention.STEP_SHARE
    assert records(life, RecordKind.DEFINITION) - before < 30
