"""Reads, changes and verifies the log of a stopped server."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from ..clock import SystemClock
from ..errors import ConfigError
from ..message.batch import MemoryUsage
from ..message.queue_entry import MessageRange, PagedOut, QueueEntry
from .checkpoint import SUFFIX as STATE_SUFFIX
from .checkpoint import decode
from .disk import Disk, RealDisk
from .durable import DurableStore
from .paging import Paging
from .port import PageIn
from .record import FILE_HEADER_BYTES, DamagedHeader, Gap, read_file_header, scan
from .recovered_messages import parts_by_queue
from .recovered_ranges import RecoveredRanges
from .recovery import SUFFIX as LOG_SUFFIX
from .recovery import Recovery, number_of
from .salvage import reason_of, salvage_file
from .segment import segment_name
from .segment_part import location_of
from .stored_marks import StoredMarks
from .work import Worker
from .writer import Writer

LOG: Final = "log"
"""The store's folder in a data directory."""


class OfflineLog:
    """The definitions and messages of a stopped server. Opening and reading it changes nothing."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        recovery = Recovery(disk, read_only=True)
        state = recovery.run()
        self.definitions: Mapping[bytes, bytes] = state.definitions
        self.unreadable: Mapping[str, str] = {
            segment_name(number): reason
            for number, reason in sorted(recovery.damage.unreadable.items())
        }
        """Names of files that are kept because they can't be read in places, with the reasons."""
        self._parts = parts_by_queue(state.segments.values())

    def counts(self) -> dict[int, int]:
        """Returns the number of messages by queue id."""
        counts = {key: sum(part.unsettled for part in parts) for key, parts in self._parts.items()}
        return {queue_id: count for queue_id, count in counts.items() if count}

    def messages(self, queue_id: int) -> Iterator[MessageRange]:
        """Yields a queue's readable messages, oldest first; changes nothing."""
        worker = Worker()
        writer = Writer(self._disk, lambda *_: None, worker.failed, lambda: False)
        marks = StoredMarks({}, {})
        paging = Paging(self._disk, worker, writer, SystemClock(), marks, MemoryUsage())
        parts = self._parts.get(queue_id, [])
        for paged_out in RecoveredRanges(paging.loader).of(parts, in_order=True):
            yield from _page_in_all(paged_out, paging.page_in, worker.deliver)
        paging.close()

    def move(self, queue_id: int, target: int, changes: Mapping[bytes, bytes]) -> int:
        """Stores definitions, then moves the readable messages of a queue to another one, as new
        messages; returns how many. After a crash each of them is in one of the two queues. Raises
        `OSError`."""
        moved = 0
        with self._open() as store:
            old, new = _Identity(queue_id), _Identity(target)
            for key, value in changes.items():
                store.define(key, value)
            for paged_out in store.recovered.of(old, in_order=True):
                for messages in _page_in_all(paged_out, store.page_in, store.turned):
                    _move(store, messages, old, new)
                    moved += messages.count
        return moved

    def drop(self, queue_id: int) -> None:
        """Settles all messages of a queue id. Raises `OSError`."""
        with self._open() as store:
            store.drop(_Identity(queue_id))

    def release(self, name: str) -> None:
        """Lets an `unreadable` file be removed as soon as all its messages are settled. Raises
        `OSError`."""
        with self._open() as store:
            store.log.segments[number_of(name)].is_fenced = False

    def change(self, changes: Mapping[bytes, bytes | None]) -> None:
        """Stores all of these definitions or none, and syncs them. Raises `OSError`."""
        with self._open() as store, store.together():
            for key, value in changes.items():
                store.define(key, value)
        self.definitions = dict(store.definitions)

    @contextmanager
    def _open(self) -> Iterator[DurableStore]:
        """Opens the store; all changes made inside are durable afterwards. Raises `OSError`."""
        failures: list[OSError] = []
        store = DurableStore(self._disk, on_failure=failures.append)
        yield store
        store.request()
        store.turned()
        refused = bool(store.barrier())
        store.stop()
        if failures:
            raise failures[0]
        if refused:
            raise OSError("the disk is full")

    def close(self) -> None:
        """Does nothing: no files are open between calls."""


def open_offline(directory: Path) -> OfflineLog:
    """Opens the log in the data directory of a stopped server.

    Raises `ConfigError` if there is none, or one that is damaged or of a newer Warren.
    """
    if not (directory / LOG).is_dir():
        raise ConfigError(
            f"{directory} is not a Warren data directory; give the one that the server ran with"
        )
    return OfflineLog(RealDisk(directory / LOG))


@dataclass(frozen=True, slots=True)
class _Identity:
    """A queue with the attributes that the store uses."""

    id: int
    durable: bool = True
    has_consumers: bool = False


def _page_in_all(
    paged_out: PagedOut, page_in: PageIn, deliver: Callable[[], object]
) -> Iterator[MessageRange]:
    """Yields the messages of a range, read a megabyte at a time; each read frees the one before."""
    part = location_of(paged_out).part
    while paged_out.count:
        read: list[MessageRange] = []
        page_in.request(paged_out, read.extend)
        deliver()
        yield from read
        part.entries.clear()


def _move(store: DurableStore, messages: MessageRange, old: _Identity, new: _Identity) -> None:
    entry = messages.entry
    batch = copy(entry.batch)
    batch.sequence = store.reserve(batch.count)
    batch.location = None
    chosen = array("I", [entry.index(at) for at in range(messages.low, messages.high)])
    with store.together():
        store.append(batch, [(new, QueueEntry(batch, chosen))])
        store.settle(old, messages)


@dataclass(frozen=True, slots=True)
class StoreFinding:
    """The result of verifying one file: its valid records, its size and its faults."""

    name: str
    records: int
    size: int
    faults: tuple[str, ...]


def verify(disk: Disk) -> Iterator[StoreFinding]:
    """Checks every byte that is protected by a checksum; changes nothing. Raises `OSError`."""
    logs = [name for name in disk.names() if name.endswith(LOG_SUFFIX)]
    for name in disk.names():
        if name.endswith(LOG_SUFFIX):
            yield _verified(disk, name, partial(_verify_segment, is_last=name == logs[-1]))
        elif name.endswith(STATE_SUFFIX):
            yield _verified(disk, name, _verify_checkpoint)


def _verified(disk: Disk, name: str, check: Callable[[str, bytes], StoreFinding]) -> StoreFinding:
    data, error = salvage_file(disk, name)
    found = check(name, data)
    if error is None:
        return found
    unread = f"it is partly unreadable: {reason_of(error)}"
    return replace(found, faults=(unread, *found.faults))


def _verify_segment(name: str, data: bytes, *, is_last: bool) -> StoreFinding:
    faults = []
    try:
        read_file_header(name, data)
    except DamagedHeader as error:
        faults.append(str(error))  # The records have checksums of their own.
    except ConfigError as error:
        return StoreFinding(name, 0, len(data), (str(error),))
    records, end = 0, FILE_HEADER_BYTES
    for found in scan(number_of(name), memoryview(data)):
        if isinstance(found, Gap):
            faults.append(f"bytes {found.start} to {found.end - 1} are damaged")
        else:
            records += 1
            end = found.end
    rest = len(data[end:].rstrip(b"\0"))
    if rest and not is_last:
        faults.append(f"bytes {end} to {end + rest - 1} are damaged")
    elif rest:
        faults.append(f"the last record, at offset {end}, is damaged or was never finished")
    return StoreFinding(name, records, len(data), tuple(faults))


def _verify_checkpoint(name: str, data: bytes) -> StoreFinding:
    try:
        read_file_header(name, data)
        state = decode(data)
    except (ConfigError, ValueError) as error:
        return StoreFinding(name, 0, len(data), (str(error),))
    return StoreFinding(name, len(state.definitions), len(data), ())
