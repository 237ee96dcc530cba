"""Recovers a store's directory: reads the newest checkpoint, then replays the log behind it.

An invalid end, left by a write that a crash interrupted, is cut off. Invalid bytes that records
follow are damage: they are copied aside and left out, and the rest is served.
"""

from __future__ import annotations

from typing import Final
from uuid import uuid4

from ..errors import ConfigError
from . import checkpoint, small_records
from .checkpoint import CheckpointState
from .damage import Damage
from .disk import Disk
from .footer import write_footer
from .index_repair import IndexRepair
from .log_replay import LogReplay
from .overflow import remove_left
from .reader import RecordReader
from .record import (
    FILE_HEADER_BYTES,
    KIND_COMPACTED,
    KIND_LOG,
    DamagedHeader,
    Flags,
    Record,
    read_file_header,
    scan,
)
from .salvage import reason_of, salvage
from .segment import Segment, segment_name
from .segment_part import SegmentPart

SUFFIX: Final = ".log"


class Recovery:
    """Reads a store's directory. `run` changes no file of the store before all are read, and
    nothing at all with `read_only`."""

    def __init__(self, disk: Disk, *, read_only: bool = False) -> None:
        self._disk = disk
        self._read_only = read_only
        self._reader = RecordReader(disk)
        self.state = CheckpointState(uuid4().bytes)
        self.damage = Damage(disk, read_only=read_only)
        self._unread: dict[int, str] = {}
        self._sizes: dict[int, int] = {}
        self._is_new = True

    def run(self) -> CheckpointState:
        """Recovers the state. Raises `OSError`, or `ConfigError` for foreign files, newer formats
        and missing segments."""
        found = checkpoint.read_newest(self._disk)
        numbers = sorted(number_of(name) for name in self._disk.names() if name.endswith(SUFFIX))
        if found is not None:
            self.state, self._is_new = found, False
        missing = [number for number in self.state.segments if number not in numbers]
        if missing:
            raise ConfigError(
                f"{segment_name(missing[0])} is missing; nothing was changed. Restore that file "
                "from a copy of the data directory, or create an empty one in its place: its "
                "contents are lost then, and all other data is served."
            )
        compacted = {number for number in numbers if self._kind(number) == KIND_COMPACTED}
        repair = IndexRepair(self._disk, self._reader, self.state, self.damage)
        for segment in self.state.segments.values():
            repair.repair(segment, self._sizes[segment.number])
        behind = {number for number in numbers if number >= self.state.segment} - compacted
        replay = LogReplay(self._disk, self._reader, self.state, self.damage, self._unread)
        for number in numbers:
            if number in behind:
                replay.apply(number)
                self.state.clean = False
            elif number not in self.state.segments:
                dead = self.state.segments[number] = Segment(number)
                dead.sealed = True
            else:
                self.state.segments[number].is_moved = number in compacted
        self._finish(numbers, replay, repair)
        return self.state

    def _kind(self, number: int) -> bytes:
        """Returns the kind of a segment's file. Raises `ConfigError` if it is not this store's."""
        name = segment_name(number)
        file = self._disk.open(name)
        try:
            self._sizes[number] = file.size()
            raw, error = salvage(file, 0, FILE_HEADER_BYTES)
            if error is not None:
                self._unread[number] = reason_of(error)
            header = read_file_header(name, raw)
        except DamagedHeader:
            return self._kind_without_header(number, salvage(file, 0, file.size())[0])
        finally:
            file.close()
        if header.number != number or header.kind not in (KIND_LOG, KIND_COMPACTED):
            raise ConfigError(
                f"{name}: this is another file, with number {header.number}; nothing was changed. "
                "Restore the file of that name from a copy of the data directory."
            )
        if self._is_new:
            self.state.store_id, self._is_new = header.store_id, False
        if header.store_id != self.state.store_id:
            raise ConfigError(f"{name}: belongs to another store; nothing was changed")
        return header.kind

    def _kind_without_header(self, number: int, data: bytes) -> bytes:
        """Returns the kind of a file with a damaged header, from the flags of its records. A
        segment in the checkpoint is treated as compacted, which only makes acks a few bytes longer.
        """
        if number not in self._unread:
            self.damage.add_gap(Segment(number), 0, memoryview(data)[:FILE_HEADER_BYTES])
        if number in self.state.segments:
            return KIND_COMPACTED
        if not any(data):
            return KIND_LOG  # A crash or a full disk left it without a header.
        records = scan(number, memoryview(data))
        moved = (record.flags & Flags.MOVED for record in records if isinstance(record, Record))
        return KIND_COMPACTED if any(moved) else KIND_LOG

    def _fence_others(self) -> None:
        """Fences segments of the checkpoint that could not be read: their headers, or records that
        settlements refer to."""
        for number, reason in {**self._reader.unreadable, **self._unread}.items():
            segment = self.state.segments[number]
            if segment.unsettled and number not in self.damage.unreadable:
                self.damage.fence(segment, reason)
        for segment in self.state.segments.values():
            if segment.is_fenced:
                self.damage.unreadable.setdefault(
                    segment.number, "an earlier start could not read it"
                )

    def _finish(self, numbers: list[int], replay: LogReplay, repair: IndexRepair) -> None:
        self._fence_others()
        for segment in self.state.segments.values():
            for part in list(segment.parts.values()):
                _forget_entries(part)
        if not self._read_only:
            for segment in replay.tail:
                self._seal(segment)
            checkpoint.remove_unfinished(self._disk)
            remove_left(self._disk)
        self._reader.close()
        for segment in list(self.state.segments.values()):
            segment.sealed = True
            for part in list(segment.parts.values()):
                if not part.unsettled:
                    del segment.parts[part.queue_id]
        # A stop in order leaves a checkpoint whose number has no segment; the next checkpoint must
        # have another number, or it would replace this one.
        self.state.segment = max([*numbers, self.state.checkpoint]) + 1
        if not self._read_only:
            repair.write()
        for segment in self.state.segments.values():
            if not segment.keeps_indexes:
                for part in segment.parts.values():
                    part.index = None

    def _seal(self, segment: Segment) -> None:
        """Cuts off an invalid end, and writes the index if there is space for it. An index that
        does not match the records found now is cut off as well: its ordinals would be wrong."""
        file = self._disk.open(segment.name)
        try:
            if file.size() > segment.end:
                file.truncate(segment.end)
            footer = self._reader.footer(segment.number)
            is_right = footer is not None and _is_index_of(segment, footer)
            if footer is not None and not is_right:
                segment.end = footer.offset
                file.truncate(segment.end)
            if segment.end > FILE_HEADER_BYTES and not is_right:
                write_footer(segment, file)
            file.sync()
        finally:
            file.close()


def _forget_entries(part: SegmentPart) -> None:
    if not part.entries:
        return
    for ordinal, bits in list(part.settled_bits()):
        part.partial[ordinal] = bits
    part.entries.clear()


def _is_index_of(segment: Segment, footer: Record) -> bool:
    table = small_records.IndexTable(footer.body)
    return all(
        table.index(part.queue_id).numbers == part.index.numbers
        for part in segment.parts.values()
        if part.unsettled and part.index is not None
    )


def number_of(name: str) -> int:
    """Returns the number in the name of a segment's file. Raises `ConfigError` for other names."""
    digits = name.removesuffix(SUFFIX)
    if not digits.isdigit():
        raise ConfigError(f"{name}: not a file of Warren's log; nothing was changed")
    return int(digits)
