"""Segment parts: settling in any order, indexes, and paged-out ranges."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.messages import batch
from warrenmq.core.message.queue_entry import PagedOut, QueueEntry
from warrenmq.core.message.settled_set import packed, unpacked
from warrenmq.core.store import record_index as module
from warrenmq.core.store.record_index import RecordIndex
from warrenmq.core.store.segment import Segment
from warrenmq.core.store.segment_part import SegmentPart
from warrenmq.core.store.settled_set import RecordSettledSet, positions
from warrenmq.core.wire.properties import RANKED, TIMED


def part_with(entry: QueueEntry) -> tuple[SegmentPart, RecordSettledSet]:
    part = Segment(1).part(7)
    last = entry.sequence(entry.count - 1)
    ordinal = part.add(entry.sequence(0), last, entry.count, 48, 100, False)
    return part, part.attach(ordinal, entry)


@st.composite
def entries(draw: st.DrawFn) -> QueueEntry:
    one = batch(draw(st.integers(1, 12)), draw(st.integers(1, 100)))
    if draw(st.booleans()):
        return QueueEntry(one, None)
    chosen = draw(st.sets(st.integers(0, one.count - 1), min_size=1))
    return QueueEntry(one, array("I", sorted(chosen)))


def unsettled_of(settled_set: RecordSettledSet, entry: QueueEntry) -> list[int]:
    return [
        entry.sequence(at)
        for low, high in settled_set.intervals(0, entry.count)
        for at in range(low, high)
    ]


@given(entries(), st.data())
def test_settled_in_any_order(entry: QueueEntry, data: st.DataObject) -> None:
    part, settled_set = part_with(entry)
    left = [entry.sequence(at) for at in range(entry.count)]
    order = data.draw(st.permutations(range(entry.count)))
    for at in order[: data.draw(st.integers(0, entry.count))]:
        settled_set.settle(at, at + 1)
        left.remove(entry.sequence(at))
        assert unsettled_of(settled_set, entry) == left
        assert settled_set.unsettled == part.unsettled == part.segment.unsettled == len(left)
        assert part.is_dead(0) == (not left)
    flags = unpacked(settled_set.bits(0, entry.count), entry.count)
    assert [entry.sequence(at) for at in range(entry.count) if not flags[at]] == left


@given(entries(), st.data())
def test_an_entry_read_back_has_its_settlements(entry: QueueEntry, data: st.DataObject) -> None:
    part, settled_set = part_with(entry)
    gone = data.draw(st.sets(st.integers(0, entry.count - 1), max_size=entry.count - 1))
    for at in sorted(gone):
        settled_set.settle(at, at + 1)
    settled = dict(part.settled_bits())
    left = unsettled_of(settled_set, entry)
    part.detach(0)
    part.partial.update(settled)
    again = QueueEntry(entry.batch, entry.selection)
    assert unsettled_of(part.attach(0, again), again) == left


@given(st.integers(1, 20).flatmap(lambda count: st.permutations(range(count))))
def test_records_die_in_any_order(order: list[int]) -> None:
    part = Segment(1).part(7)
    for number in range(len(order)):
        part.add(number * 10, number * 10 + 4, 5, 48 + number, 20, False)
    for count, ordinal in enumerate(order, 1):
        part.mark_dead(ordinal)
        assert {at for at in order if part.is_dead(at)} == set(order[:count])
        assert all(at > part.front for at in part.dead)
    assert part.front == len(order) and not part.dead


@given(st.lists(st.integers(0, 1), min_size=1, max_size=40).map(bytearray))
def test_flags_are_packed_as_bits(flags: bytearray) -> None:
    bits = packed(flags)
    assert unpacked(bits, len(flags)) == flags
    assert len(bits) == (len(flags) + 7) // 8


def test_an_index_finds_records_by_number() -> None:
    index = RecordIndex()
    index.add(10, 14, 5, 48, 100, special=0)
    index.add(20, 20, 1, 148, 2**32 - 1, special=TIMED)
    assert [index.at(number) for number in (9, 10, 15, 20, 99)] == [-1, 0, 0, 1, 1]
    entry = index[1]
    assert (entry.first, entry.last, entry.count, entry.offset, entry.size, entry.special) == (
        20, 20, 1, 148, 2**32 - 1, TIMED,
    )  # fmt: skip
    assert (index[0].last, index[0].special, len(index)) == (14, 0, 2)
    for special in (RANKED, TIMED | RANKED):
        index.add(30, 31, 2, 48, 1, special=special)
        assert (index[len(index) - 1].special, index[len(index) - 1].count) == (special, 2)
    assert list(index.ends()) == [5, 6, 8, 10]


def test_an_index_that_two_threads_ask_at_once() -> None:
    """Neither finds what the other has half done."""
    index = RecordIndex(array("Q", [1, 1 << 32 | 1, 1] * 3))
    plain = itertools.accumulate
    inner: list[list[int]] = []

    def accumulate(counts: list[int], initial: int) -> Iterator[int]:
        if not inner:
            inner.append([])
            inner[0] += index.ends()  # The other one comes here.
        yield from plain(counts, initial=initial)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "accumulate", accumulate)
        assert list(index.ends()) == [1, 2, 3]
    assert inner == [[1, 2, 3]]
    assert list(index.ends()) == [1, 2, 3]


def test_the_size_of_the_messages_of_one_queue() -> None:
    """About their part of the record, if others' lie between them."""
    index = RecordIndex()
    index.add(10, 14, 5, 48, 100, special=0)
    index.add(20, 29, 5, 148, 100, special=0)
    index.add(40, 49, 5, 0, 0, special=0)
    assert [index[at].share_bytes for at in range(3)] == [100, 50, 0]
    assert [index[at].is_lost for at in range(3)] == [False, False, True]
    assert (index.size_bytes(0, 3), index.size_bytes(1, 9)) == (150, 50)


@given(entries(), st.integers(0, 120), st.integers(0, 120))
def test_positions_of_an_interval_of_numbers(entry: QueueEntry, first: int, last: int) -> None:
    low, high = positions(entry, first, last)
    inside = [at for at in range(entry.count) if first <= entry.sequence(at) <= last]
    assert list(range(low, high)) == inside


def test_a_cleared_part_holds_nothing() -> None:
    entry = QueueEntry(batch(5), None)
    part, settled_set = part_with(entry)
    settled_set.settle(1, 2)
    part.clear()
    assert (part.unsettled, part.segment.unsettled, part.segment.total) == (0, 0, 5)
    assert part.is_dead(0)


@given(st.lists(st.integers(0, 30), max_size=30))
def test_ranges_are_added_and_removed_in_any_order(places: list[int]) -> None:
    part = Segment(1).part(7)
    paged_out_ranges = [PagedOut(1, None) for _ in range(10)]
    for at, paged_out in enumerate(paged_out_ranges):
        part.add_paged_out(paged_out, at, at + 1)
    left = list(paged_out_ranges)
    for place in places[: len(left)]:
        part.remove_paged_out(left.pop(place % len(left)))
    assert set(part.paged_out_ranges) == set(left)
    assert [paged_out for paged_out in paged_out_ranges if part.has_paged_out(paged_out)] == left
