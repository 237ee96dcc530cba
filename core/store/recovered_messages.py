"""The messages that recovery found: claimed by the queues that are made from their definitions, or
left in quarantine."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

from ..message.queue_entry import PagedOut
from .damage import Damage
from .damaged_bytes import set_aside_files
from .disk import Disk
from .log import Log
from .paging import Paging
from .port import QueueIdentity, Recovered
from .recovered_ranges import RecoveredRanges
from .segment import Segment, segment_name
from .segment_part import SegmentPart

logger = logging.getLogger(__name__)


class RecoveredMessages(Recovered):
    """The messages that recovery found, by queue."""

    def __init__(self, disk: Disk, log: Log, paging: Paging, damage: Damage) -> None:
        self.is_damaged = damage.is_damaged
        self._unread = {**damage.lost, **damage.unreadable}
        self._disk = disk
        self._log = log
        self._reader = paging.reader
        self._ranges = RecoveredRanges(paging.loader)
        self._claimed: set[int] = set()
        self._unclaimed: set[int] = set()
        self._parts: dict[int, list[SegmentPart]] = {}
        self._parts_of_segment = 0
        """The segment that was open when `_parts` was made: compaction opens a new one."""

    def of(
        self, queue: QueueIdentity, *, ranks: bool = False, in_order: bool = False
    ) -> Sequence[PagedOut]:
        self._claimed.add(queue.id)
        return self._ranges.of(self._parts_of(queue), ranks=ranks, in_order=in_order)

    def next_offset(self, queue: QueueIdentity) -> int:
        return max((part.next_offset for part in self._parts_of(queue)), default=0)

    def _parts_of(self, queue: QueueIdentity) -> list[SegmentPart]:
        if self._parts_of_segment != self._log.open_number:
            self._parts_of_segment = self._log.open_number
            self._parts = parts_by_queue(self._log.segments.values())
        return self._parts.get(queue.id, [])

    def complete(self) -> None:
        found = {key for segment in self._log.segments.values() for key in segment.parts}
        self._unclaimed = found - self._claimed
        self._claimed.clear()
        self._parts, self._parts_of_segment = {}, 0
        for queue_id, count in self.quarantine.items():
            logger.error(
                "%d messages have no queue (queue id %d): its definition was lost; they are in "
                "quarantine, see `warren repair`", count, queue_id,
            )  # fmt: skip

    def forget(self, queue_id: int) -> None:
        """Removes a queue that is dropped from quarantine."""
        self._unclaimed.discard(queue_id)

    @property
    def quarantine(self) -> Mapping[int, int]:
        counts = dict.fromkeys(self._unclaimed, 0)
        for segment in self._log.segments.values():
            for queue_id in counts.keys() & segment.parts.keys():
                counts[queue_id] += segment.parts[queue_id].unsettled
        return {queue_id: count for queue_id, count in counts.items() if count}

    @property
    def unreadable(self) -> Mapping[str, str]:
        found = {**self._reader.damaged, **self._unread, **self._reader.unreadable}
        return {segment_name(number): reason for number, reason in sorted(found.items())}

    def set_aside_files(self) -> Mapping[str, int]:
        return set_aside_files(self._disk)


def parts_by_queue(segments: Iterable[Segment]) -> dict[int, list[SegmentPart]]:
    """Returns the parts of all segments by queue id."""
    found: dict[int, list[SegmentPart]] = {}
    for segment in segments:
        for part in segment.parts.values():
            found.setdefault(part.queue_id, []).append(part)
    return found
