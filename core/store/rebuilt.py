"""Rebuilds the indexes of a segment from its records when its own are damaged.

Settlements refer to records by ordinals, so a damaged record must keep its ordinal. The checkpoint
has the number of records of each queue. Which of them are lost follows from the gaps between valid
records, and from the readable parts of damaged records and of the damaged index. Damaged data is
used only if it agrees with valid data.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from .codec import read_offsets, read_shares
from .record import (
    FILE_HEADER_BYTES,
    HEAD_BYTES,
    KIND_COMPACTED,
    MAGIC,
    Flags,
    Gap,
    Record,
    RecordKind,
    scan,
    unchecked_record,
)
from .record_index import ENTRY, INTERVAL_MAX, IndexSummary, RecordIndex
from .small_records import QUEUE_BYTES, damaged_index

Row = tuple[int, int, int]
"""The numbers of one record in an index."""


@dataclass(frozen=True, slots=True)
class Aligned:
    """An index with an entry for each record that there was. `unsure` has, for valid records with
    uncertain ordinals, the first and the last possible one; `lost` counts entries without a valid
    record."""

    index: RecordIndex
    unsure: Mapping[int, tuple[int, int]]
    lost: int


class RebuiltTable:
    """All indexes of a segment, rebuilt from its records. If the disk could not read all of it, the
    segment's own index may be readable again later and then decides what is settled: until then,
    records with uncertain ordinals are left out."""

    def __init__(self, segment: int, data: memoryview, *, is_whole: bool = True) -> None:
        self._is_whole = is_whole
        self._indexes: defaultdict[int, RecordIndex] = defaultdict(RecordIndex)
        self._hints: defaultdict[int, list[Row]] = defaultdict(list)
        self._offsets: defaultdict[int, array[int]] = defaultdict(lambda: array("Q"))
        """For streams, the offset of each record's first message."""
        self._gaps = array("Q")
        self._is_moved = bytes(data[: len(KIND_COMPACTED)]) == KIND_COMPACTED
        self._end = FILE_HEADER_BYTES
        self._read(segment, data)
        self._index_body = _index_body(data, self._end)
        if self._is_moved:
            for index in self._indexes.values():
                _sort(index)  # Compaction writes records in the order of queues.
        numbers = sum(len(index.numbers) for index in self._indexes.values())
        self.size_bytes = 8 * numbers + QUEUE_BYTES * len(self._indexes) + len(self._index_body)

    def _read(self, segment: int, data: memoryview) -> None:
        last = FILE_HEADER_BYTES
        for found in _counted(scan(segment, data)):
            if isinstance(found, Gap):
                self._gaps.append(found.start)
                self._note_hints(data[: found.end], found.start)
                continue
            last = found.end
            if found.kind == RecordKind.MESSAGES:
                self._end = found.end
                self._is_moved |= bool(found.flags & Flags.MOVED)
                for queue_id, row, offset in _rows(found):
                    self._indexes[queue_id].numbers.extend(row)
                    if offset is not None:
                        self._offsets[queue_id].append(offset)
        self._note_hints(data, last)

    def _note_hints(self, data: memoryview, at: int) -> None:
        """Notes the rows of damaged records from `at` on, as far as they can be decoded."""
        record = unchecked_record(data, at)
        while record is not None and record.kind == RecordKind.MESSAGES:
            try:
                rows = list(_rows(record))
            except (struct.error, ValueError, IndexError, OverflowError):
                return
            for queue_id, row, _ in rows:
                self._hints[queue_id].append(row)
            record = unchecked_record(data, record.end)

    @property
    def is_empty(self) -> bool:
        """Whether there is no valid record of messages."""
        return not self._indexes

    def index(self, queue_id: int, summary: IndexSummary | None = None) -> RecordIndex:
        """Returns a queue's index; an empty one if it has none. Without a summary, it has no
        entries for lost records."""
        if summary is not None:
            return self.aligned(queue_id, summary).index
        return self._indexes.get(queue_id) or RecordIndex()

    def aligned(self, queue_id: int, summary: IndexSummary) -> Aligned:
        """Returns the index of a queue, aligned to this summary."""
        index = self._indexes.get(queue_id) or RecordIndex()
        lost = summary.records - len(index)
        if lost <= 0:
            return Aligned(index, {}, 0)
        sound = list(_rows_of(index.numbers))
        claimed = list(_rows_of(damaged_index(self._index_body, queue_id, ENTRY * summary.records)))
        hints = [
            row
            for row in self._hints[queue_id]
            if _is_within(row, summary) and self._is_confirmed(row, sound, claimed)
        ]
        known = sorted({row[0]: row for row in (*hints, *sound)}.values())
        is_all = len(known) == summary.records
        if len(known) > summary.records or (queue_id in self._offsets and not is_all):
            known = sound
        gaps = self._gap_before(queue_id, known, sound)
        bounds = _bounds(known, gaps, summary, claimed)
        if not self._is_whole:
            known, bounds, gaps = _with_certain_ordinals(known, bounds, gaps)
        index = _placed(known, bounds, gaps, summary, claimed)
        is_sound = set(sound)
        unsure = {
            low: (low, high)
            for low, high, row in zip(*bounds, known, strict=True)
            if low < high and row in is_sound
        }
        return Aligned(index, unsure, lost)

    def _is_confirmed(self, hint: Row, sound: list[Row], claimed: Sequence[Row]) -> bool:
        """Whether a damaged record's numbers agree with the damaged index or, if that has no entry
        for it, with the order of the log, which compacted records do not have."""
        claims = [claim for claim in claimed if claim[1] == hint[1]]
        if claims or self._is_moved:
            return hint in claims
        at = bisect_right(sound, hint)
        return all(row[1] < hint[1] for row in sound[at - 1 : at]) and all(
            hint[1] < row[1] for row in sound[at : at + 1]
        )

    def _gap_before(self, queue_id: int, known: list[Row], sound: list[Row]) -> list[int | None]:
        """Returns how many messages are lost before each record, None where that is unknown."""
        offsets = self._offsets.get(queue_id)
        if offsets and known == sound:
            ends = [at + (row[2] & INTERVAL_MAX) for at, row in zip(offsets, sound, strict=True)]
            return [None, *(at - end for at, end in zip(offsets[1:], ends[:-1], strict=True))]
        if self._is_moved:
            return [None] * len(known)
        certain = set(sound)
        gaps: list[int | None] = [None]
        for earlier, row in pairwise(known):
            gap_counts = [bisect_right(self._gaps, numbers[1] >> 32) for numbers in (earlier, row)]
            follows = gap_counts[0] == gap_counts[1] and row in certain and earlier in certain
            gaps.append(0 if follows else None)
        return gaps


def _counted(found: Iterable[Record | Gap]) -> Iterator[Record | Gap]:
    """Yields gaps, and the records that counted when the segment was sealed. A group with a gap in
    it was complete then: after a group that a crash cut short, there is nothing."""
    group: list[Record | Gap] | None = None
    before: Record | Gap | None = None
    for record in found:
        is_grouped = isinstance(record, Record) and bool(record.flags & Flags.GROUPED)
        is_first = isinstance(record, Record) and bool(record.flags & Flags.FIRST)
        if isinstance(record, Record) and (is_first or not is_grouped):
            yield from _if_damaged(group)
            group = [] if is_grouped else None
        elif is_grouped and group is None and isinstance(before, Gap):
            group = [before]  # Its beginning is in the gap.
        if group is None:
            if not is_grouped:
                yield record
        else:
            group.append(record)
            if isinstance(record, Record) and record.flags & Flags.LAST:
                yield from group
                group = None
        before = record
    yield from _if_damaged(group)


def _if_damaged(group: list[Record | Gap] | None) -> Iterable[Record | Gap]:
    """Returns the group if it is incomplete because of damage; nothing if because of a crash."""
    return group if group and any(isinstance(one, Gap) for one in group) else ()


def _rows(record: Record) -> Iterator[tuple[int, Row, int | None]]:
    """Yields, for each queue with messages in a record, its id, its row and, for a stream, the
    offset of the first message."""
    count, special, shares = read_shares(record.body)
    offsets = dict(read_offsets(record.body))
    size = record.end - record.offset
    for share in shares:
        chosen = share.selection
        first = record.sequence + (chosen[0] if chosen else 0)
        last = record.sequence + (chosen[-1] if chosen else count - 1)
        row = RecordIndex()
        row.add(first, last, len(chosen) if chosen else count, record.offset, size, special=special)
        numbers = row.numbers[0], row.numbers[1], row.numbers[2]
        for flagged_id in share.queues:
            yield flagged_id >> 1, numbers, offsets.get(flagged_id >> 1)


def _rows_of(numbers: Sequence[int]) -> Iterator[Row]:
    each = iter(numbers)
    return zip(each, each, each, strict=True)


def _sort(index: RecordIndex) -> None:
    rows = sorted(_rows_of(index.numbers))
    index.numbers = array("Q", [number for row in rows for number in row])


def _index_body(data: memoryview, end: int) -> bytes:
    """Returns the body of the damaged index, which follows the last valid record of messages."""
    at = bytes(data[end:]).find(MAGIC + bytes([RecordKind.INDEX]))
    return b"" if at < 0 else bytes(data[end + at + HEAD_BYTES :])


def _is_within(row: Row, summary: IndexSummary) -> bool:
    return summary.first <= row[0] <= _last(row) <= summary.last


def _last(row: Row) -> int:
    return row[0] + (row[2] >> 32 & INTERVAL_MAX)


class _Bounds(NamedTuple):
    """The first and the last possible ordinal of each record."""

    low: list[int]
    high: list[int]


def _bounds(
    known: list[Row], gaps: list[int | None], summary: IndexSummary, claimed: Sequence[Row]
) -> _Bounds:
    """Returns the possible ordinals of records, without the claims of the damaged index if these
    contradict the rest."""
    for claims in (claimed, ()):
        bounds = _narrowed(known, gaps, summary, claims)
        if all(low <= high for low, high in zip(*bounds, strict=True)):
            return bounds
    spare = summary.records - len(known)
    return _Bounds(list(range(len(known))), list(range(spare, summary.records)))


def _narrowed(
    known: list[Row], gaps: list[int | None], summary: IndexSummary, claimed: Sequence[Row]
) -> _Bounds:
    count, spare = len(known), summary.records - len(known)
    low, high = list(range(count)), list(range(spare, summary.records))
    if known and known[0][0] == summary.first:
        high[0] = 0
    if known and _last(known[-1]) == summary.last:
        low[-1] = summary.records - 1
    by_place = {row[1]: at for at, row in enumerate(known)}
    for ordinal, claim in enumerate(claimed):
        at = by_place.get(claim[1])
        if at is not None:
            low[at], high[at] = max(low[at], ordinal), min(high[at], ordinal)
    for _ in range(2):  # Each pass uses what the one before has narrowed.
        for at in range(1, count):
            low[at] = max(low[at], low[at - 1] + (2 if gaps[at] else 1))
            if gaps[at] == 0:
                high[at] = min(high[at], high[at - 1] + 1)
        for at in range(count - 2, -1, -1):
            high[at] = min(high[at], high[at + 1] - (2 if gaps[at + 1] else 1))
            if gaps[at + 1] == 0:
                low[at] = max(low[at], low[at + 1] - 1)
    return _Bounds(low, high)


def _with_certain_ordinals(
    known: list[Row], bounds: _Bounds, gaps: list[int | None]
) -> tuple[list[Row], _Bounds, list[int | None]]:
    """Returns the records with one possible ordinal; the others count as lost between them."""
    chosen, before = [], []
    missing: int | None = 0
    for at, (low, high) in enumerate(zip(*bounds, strict=True)):
        gap = gaps[at]
        missing = None if missing is None or gap is None else missing + gap
        if low == high:
            chosen.append(at)
            before.append(missing)
            missing = 0
        elif missing is not None:
            missing += known[at][2] & INTERVAL_MAX
    ordinals = [bounds.low[at] for at in chosen]
    return [known[at] for at in chosen], _Bounds(ordinals, list(ordinals)), before


def _placed(
    known: list[Row],
    bounds: _Bounds,
    gaps: list[int | None],
    summary: IndexSummary,
    claimed: Sequence[Row],
) -> RecordIndex:
    """Returns an index with each record at its first possible ordinal and entries for lost ones."""
    at_ordinal = {ordinal: at for at, ordinal in enumerate(bounds.low)}
    following = _following({ordinal: known[at] for ordinal, at in at_ordinal.items()}, summary)
    index, behind, at, missing = RecordIndex(), summary.first, -1, 0
    for ordinal in range(summary.records):
        if ordinal in at_ordinal:
            at = at_ordinal[ordinal]
            row = known[at]
            missing = (gaps[at + 1] or 0) if at + 1 < len(known) else 0
        else:
            claim = claimed[ordinal] if ordinal < len(claimed) else (0, 0, 0)
            row = _lost(claim, behind, following[ordinal], missing)
            missing = max(0, missing - (row[2] & INTERVAL_MAX))
        index.numbers.extend(row)
        behind = max(behind, _last(row) + (row[2] > 0))
    return index


def _lost(claim: Row, behind: int, following: int, missing: int) -> Row:
    """Returns the row of a lost record: as the damaged index claims, if that is possible, or one
    that counts `missing` messages."""
    if claim[1] & 0xFFFFFFFF and behind <= claim[0] <= _last(claim) < following:
        return claim
    return min(behind, following), 0, min(missing, INTERVAL_MAX)


def _following(by_ordinal: Mapping[int, Row], summary: IndexSummary) -> list[int]:
    """Returns, for each ordinal, the first sequence number of the next known record."""
    found, after = [0] * summary.records, summary.last + 1
    for ordinal in range(summary.records - 1, -1, -1):
        found[ordinal] = after
        if ordinal in by_ordinal:
            after = by_ordinal[ordinal][0]
    return found
