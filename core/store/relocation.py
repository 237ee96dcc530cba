"""Points what is left of compacted records to their new places.

Done for one queue after the other in steps: a step takes one entry, or one paged-out range, from
its old part to the new one. Between two steps each message that is to be kept counts in exactly one
of both, and whoever settles, reads or drops it finds it there. Old and new file can both be read
all the time, so a batch may be read at its new places before all queues that hold messages of it
were taken over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..message.batch import Batch, QueueEntry
from .copier import Copy, QueueCopy, Source
from .segment import Segment
from .segment_part import SegmentPart, location_of
from .settled_set import Fragment, SettledSet
from .split_entries import SplitSettledSet, is_in_log, locations_of

RECORDS_AT_ONCE = 256
"""Records of which nothing is left, as one step marks them."""


def relocate(copy: Copy, segments: dict[int, Segment]) -> Iterator[None]:
    """The steps; the new file is one of the `segments` from the first one on, so that a queue that
    is dropped is dropped there too, and sealed with the last."""
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
    """Takes one queue over from its old parts to the new one."""

    def __init__(
        self,
        copy: Copy,
        copied: QueueCopy,
        segments: Mapping[int, Segment],
        touched: dict[Batch, None],
    ) -> None:
        self._copy = copy
        self._touched = touched
        self._copied = copied
        self._part = copied.part
        self._olds: list[tuple[SegmentPart, Source]] = []
        self._ended: list[Source] = []
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
        # What is read or let go of meanwhile goes from one kind to the other.
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
            # The rest is nobody's: its queue could not be restored, or it can't be read.
            old.transfer_to(self._part, old.unsettled)
            old.segment.parts.pop(old.queue_id, None)
        for old, source in olds:
            yield from self._bury(source, old)
        for source in self._ended:
            yield from self._bury(source, None)

    def _take_entry(self, old: SegmentPart, source: Source) -> None:
        ordinal, entry = old.entries.popitem()
        before = None if old.fragments is None else old.fragments.pop(ordinal, None)
        settled_set = entry.settled_set
        assert isinstance(settled_set, SettledSet)
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
        self._make_entries(entry.batch, old.segment.number, source, at)

    def _fragments(
        self, settled_set: SettledSet, source: Source, at: int, base: int
    ) -> Iterator[Fragment]:
        """What is left of a record, which began at position `base` of its entry."""
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
        settled_set: SettledSet,
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

    def _make_entries(self, batch: Batch, segment: int, source: Source, at: int) -> None:
        """Says where a batch can be read from now on: also what others hold of the record."""
        if is_in_log(batch.location):
            first = source.bases[at] - batch.sequence
            records = ((first + index, where) for index, where in self._copy.locations(source, at))
            batch.location = locations_of(batch).exchange(segment, first, records)
            self._touched[batch] = None

    def _take_paged_out(self, old: SegmentPart, source: Source) -> None:
        paged_out = old.paged_out_ranges[-1]
        location = location_of(paged_out)
        old.remove_paged_out(paged_out)
        low, high = source.at(location.low), source.at(location.high)
        if old.dead_count != source.dead_count:
            # Others' records that lie in it, and were settled, must not be read with it.
            for at in range(low, high):
                self._bury_dead(source, at, old)
        location.part, location.at = self._part, len(self._part.paged_out_ranges)
        location.low, location.high = (
            (source.starts[low], source.stops[high - 1]) if low < high else (0, 0)
        )
        self._part.paged_out_ranges.append(paged_out)
        old.transfer_to(self._part, paged_out.count)

    def _bury(self, source: Source, old: SegmentPart | None) -> Iterator[None]:
        """Marks what was copied and has died since."""
        marked = 0
        for at in range(len(source.ordinals)):
            marked += 1 + self._bury_dead(source, at, old)
            if marked >= RECORDS_AT_ONCE:
                marked = 0
                yield

    def _bury_dead(self, source: Source, at: int, old: SegmentPart | None) -> int:
        if old is not None and not old.is_dead(source.ordinals[at]):
            return 0
        part = self._part
        for ordinal in range(source.starts[at], source.stops[at]):
            if not part.is_dead(ordinal):
                part.mark_dead(ordinal)
        return source.stops[at] - source.starts[at]
