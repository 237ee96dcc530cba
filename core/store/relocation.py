"""Points the unsettled messages of compacted records to their new locations.

Queues are relocated one after the other, in steps: a step moves one entry, or one paged-out range,
from its old part to the new one. Between two steps each unsettled message is counted in exactly one
of the two parts, where it can be settled, read or dropped. Old and new files can both be read all
the time, so a batch may be read at its new locations before all queues that have messages of it are
relocated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ..message.batch import Batch
from ..message.queue_entry import QueueEntry
from .copied_records import CompactedSegment, CopySource, QueueCopy
from .segment import Segment
from .segment_part import SegmentPart, location_of
from .settled_set import Fragment, RecordSettledSet, settled_set_of
from .split_entries import SplitSettledSet, is_in_log, locations_of

RECORDS_AT_ONCE: Final = 256
"""Dead records that one step marks."""


def relocate(copy: CompactedSegment, segments: dict[int, Segment]) -> Iterator[None]:
    """Relocates all records, in steps. The first step adds the new file to `segments`, so that a
    queue that is dropped is dropped there too; the last one seals it."""
    target = copy.segment
    touched: dict[Batch, None] = {}
    segments[target.number] = target
    for copied in copy.queues.values():
        target.parts[copied.part.queue_id] = copied.part
        yield from _QueueRelocation(copy, copied, segments, touched).steps()
    for batch in touched:
        locations_of(batch).forget(copy.victims)
        yield
    target.sealed = True
    for part in list(target.parts.values()):
        if not part.unsettled:
            target.parts.pop(part.queue_id, None)
        yield


class _QueueRelocation:
    """Moves one queue from its old parts to the new one."""

    def __init__(
        self,
        copy: CompactedSegment,
        copied: QueueCopy,
        segments: Mapping[int, Segment],
        touched: dict[Batch, None],
    ) -> None:
        self._copy = copy
        self._touched = touched
        self._copied = copied
        self._part = copied.part
        self._olds: list[tuple[SegmentPart, CopySource]] = []
        self._ended: list[CopySource] = []
        for number, source in copied.sources.items():
            segment = segments.get(number)
            old = None if segment is None else segment.parts.get(self._part.queue_id)
            if old is None:
                self._ended.append(source)
            else:
                self._olds.append((old, source))

    def steps(self) -> Iterator[None]:
        olds = self._olds
        for old, _ in olds:
            self._part.next_offset = max(self._part.next_offset, old.next_offset)
        # Paging turns entries into paged-out ranges and back meanwhile.
        while any(old.entries or old.paged_out_ranges for old, _ in olds):
            for old, source in olds:
                while old.entries:
                    self._take_entry(old, source)
                    yield
            for old, source in olds:
                while old.paged_out_ranges and not old.entries:
                    self._take_paged_out(old, source)
                    yield
        for old, _ in olds:
            # The rest is not in use: its queue was not restored, or it can't be read.
            old.transfer_to(self._part, old.unsettled)
            old.segment.parts.pop(old.queue_id, None)
        for old, source in olds:
            yield from self._mark_dead(source, old)
        for source in self._ended:
            yield from self._mark_dead(source, None)

    def _take_entry(self, old: SegmentPart, source: CopySource) -> None:
        ordinal, entry = old.entries.popitem()
        before = None if old.fragments is None else old.fragments.pop(ordinal, None)
        settled_set = settled_set_of(entry)
        at = source.at(ordinal)
        base = 0 if before is None else before.low
        fragments = list(self._fragments(settled_set, source, at, base))
        old.transfer_to(self._part, sum(fragment.unsettled for fragment in fragments))
        if (
            before is None
            and len(fragments) == 1
            and fragments[0].high - fragments[0].low == entry.count
        ):
            settled_set.part, settled_set.ordinal = self._part, fragments[0].ordinal
        else:
            self._split_entry(entry, settled_set, before, fragments)
        for fragment in fragments:
            self._part.entries[fragment.ordinal] = entry
            self._part.partial.pop(fragment.ordinal, None)
        self._set_locations(entry.batch, old.segment.number, source, at)

    def _fragments(
        self, settled_set: RecordSettledSet, source: CopySource, at: int, base: int
    ) -> Iterator[Fragment]:
        """Yields the unsettled fragments of a record that began at position `base` of its entry."""
        for ordinal in range(source.starts[at], source.stops[at]):
            low, high = base + self._copied.lows[ordinal], base + self._copied.highs[ordinal]
            unsettled = settled_set.unsettled_between(low, high)
            if unsettled:
                yield Fragment(low, high, unsettled, self._part, ordinal)
            else:
                self._part.mark_dead(ordinal)

    def _split_entry(
        self,
        entry: QueueEntry,
        settled_set: RecordSettledSet,
        before: Fragment | None,
        fragments: list[Fragment],
    ) -> None:
        if before is None:
            entry.settled_set = SplitSettledSet(settled_set, fragments)
        else:
            assert isinstance(settled_set, SplitSettledSet)
            settled_set.exchange(before, fragments)
        if self._part.fragments is None:
            self._part.fragments = {}
        self._part.fragments.update((fragment.ordinal, fragment) for fragment in fragments)

    def _set_locations(self, batch: Batch, segment: int, source: CopySource, at: int) -> None:
        """Sets the new locations of a batch, including messages of the record in other queues."""
        if is_in_log(batch.location):
            first = source.bases[at] - batch.sequence
            records = ((first + index, where) for index, where in self._copy.locations(source, at))
            batch.location = locations_of(batch).exchange(segment, first, records)
            self._touched[batch] = None

    def _take_paged_out(self, old: SegmentPart, source: CopySource) -> None:
        paged_out = old.paged_out_ranges[-1]
        location = location_of(paged_out)
        old.remove_paged_out(paged_out)
        low, high = source.at(location.low), source.at(location.high)
        if old.dead_count != source.dead_count:
            # Settled records within the range must not be read with it.
            for at in range(low, high):
                self._mark_record_dead(source, at, old)
        location.part, location.at = self._part, len(self._part.paged_out_ranges)
        location.low, location.high = (
            (source.starts[low], source.stops[high - 1]) if low < high else (0, 0)
        )
        self._part.paged_out_ranges.append(paged_out)
        old.transfer_to(self._part, paged_out.count)

    def _mark_dead(self, source: CopySource, old: SegmentPart | None) -> Iterator[None]:
        """Marks the copies of records that have been settled since the survey."""
        marked = 0
        for at in range(len(source.ordinals)):
            marked += 1 + self._mark_record_dead(source, at, old)
            if marked >= RECORDS_AT_ONCE:
                marked = 0
                yield

    def _mark_record_dead(self, source: CopySource, at: int, old: SegmentPart | None) -> int:
        """Marks the copies of a record if it is dead; returns how many there are."""
        if old is not None and not old.is_dead(source.ordinals[at]):
            return 0
        part = self._part
        for ordinal in range(source.starts[at], source.stops[at]):
            if not part.is_dead(ordinal):
                part.mark_dead(ordinal)
        return source.stops[at] - source.starts[at]
