"""Footers: the indexes of complete segments, which leave memory once they are written."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..clock import Clock
from ..slices import run_slice
from . import small_records
from .disk import FULL, File
from .record import Buffer, Flags, RecordKind, seal
from .segment import Segment
from .segment_part import SegmentPart
from .writer import Footer, Writer

logger = logging.getLogger(__name__)


def footer_records(parts: Iterable[SegmentPart], at: int) -> list[tuple[int, list[Buffer]]]:
    """Returns the records that complete a segment which ends at `at`: its indexes, and the offset
    at which these begin.

    A queue without unsettled messages in the segment needs no index; their settlements must be in
    the log already.
    """
    indexes = [
        (part.queue_id, part.index) for part in parts if part.unsettled and part.index is not None
    ]
    return [
        (RecordKind.INDEX, list(small_records.encode_indexes(indexes))),
        (RecordKind.SEALED, [small_records.encode_number(at)]),
    ]


def write_footer(segment: Segment, file: File) -> None:
    """Appends the footer of a complete segment, if there is space for it. Raises `OSError`."""
    end = segment.end
    try:
        for kind, buffers in footer_records(segment.parts.values(), end):
            sealed = seal(segment.number, segment.end, kind, Flags.NONE, 0, buffers)
            file.write(segment.end, sealed)
            segment.end += sum(map(len, sealed))
        file.sync()
    except OSError as error:
        if error.errno not in FULL:
            raise
        segment.end = end
        file.truncate(end)
        logger.warning("%s: no space for its index", segment.name)


class _Closing(NamedTuple):
    """A complete segment; `steps` free its indexes when its footer is written."""

    segment: Segment
    footer: Footer
    steps: Iterator[None]


class ClosingSegments:
    """Complete segments whose indexes are still in memory."""

    def __init__(self, writer: Writer, clock: Clock) -> None:
        self._writer = writer
        self._clock = clock
        self._segments: deque[_Closing] = deque()

    def add(self, segment: Segment) -> Footer:
        """Seals a segment; returns the footer that has to be written."""
        parts = list(segment.parts.values())
        footer = Footer(lambda at: footer_records(parts, at))
        segment.sealed = True
        self._segments.append(_Closing(segment, footer, _free_indexes(segment, parts)))
        return footer

    def free(self) -> bool:
        """Frees indexes that are written, one slice at a time; True if there are more."""
        if not self._segments:
            return False
        segment, footer, steps = self._segments[0]
        if not footer.end or not self._writer.has_written(segment.number + 1, 0):
            return False
        segment.end = footer.end
        if not run_slice(steps, self._clock):
            self._segments.popleft()
        return bool(self._segments)

    def finish(self) -> None:
        """Notes where the segments end, when everything is written."""
        for segment, footer, _ in self._segments:
            segment.end = max(segment.end, footer.end)


def _free_indexes(segment: Segment, parts: list[SegmentPart]) -> Iterator[None]:
    """Frees the indexes of a segment, and its parts without unsettled messages."""
    while parts:
        part = parts.pop()
        part.index = None
        if not part.unsettled:
            segment.parts.pop(part.queue_id, None)
        yield
