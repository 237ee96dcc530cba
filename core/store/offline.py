"""The log of a stopped server: definitions and messages, read and changed, and a look at every
byte."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from ..clock import SystemClock
from ..errors import ConfigError
from ..message.batch import MessageRange, PagedOut, QueueEntry
from .checkpoint import SUFFIX as STATE_SUFFIX
from .checkpoint import decode
from .disk import Disk, RealDisk
from .durable import DurableStore, parts_by_queue
from .paging import Paging
from .record import FILE_HEADER_BYTES, DamagedHeader, Gap, read_file_header, scan
from .recovery import SUFFIX as LOG_SUFFIX
from .recovery import Recovery, number_of
from .salvage import reason_of, salvage
from .segment import segment_name
from .segment_part import location_of
from .work import Worker
from .writer import Writer

LOG = "log"
"""The store's folder in a data directory."""


class OfflineLog:
    """Definitions of a server that does not run; reading them changes nothing."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        recovery = Recovery(disk, read_only=True)
        state = recovery.run()
        self.definitions: Mapping[bytes, bytes] = state.definitions
        self.unreadable: Mapping[str, str] = {
            segment_name(number): reason for number, reason in sorted(recovery.unreadable.items())
        }
        """Files that can't be read in places and are kept because of it, and why."""
        self._parts = parts_by_queue(state.segments.values())

    def counts(self) -> dict[int, int]:
        """How many messages each queue id has."""
        counts = {key: sum(part.unsettled for part in parts) for key, parts in self._parts.items()}
        return {queue_id: count for queue_id, count in counts.items() if count}

    def messages(self, queue_id: int) -> Iterator[MessageRange]:
        """What can be read of a queue's messages, oldest first; changes nothing."""
        worker = Worker()
        writer = Writer(self._disk, lambda *_: None, worker.failed, lambda: False)
        paging = Paging(self._disk, worker, writer, SystemClock(), {}, {})
        parts = self._parts.get(queue_id, [])
        for paged_out in paging.recovered.of(parts, in_order=True):
            assert isinstance(paged_out, PagedOut)
            yield from _page_in_all(paged_out, paging.page_in, worker.deliver)
        paging.close()

    def move(self, queue_id: int, target: int, changes: Mapping[bytes, bytes]) -> int:
        """Makes new messages of another queue of what can be read of one, after these definitions;
        gives how many. A crash leaves each of them in one of the two. Raises `OSError`."""
        moved = 0
        with self._open() as store:
            old, new = _Identity(queue_id), _Identity(target)
            for key, value in changes.items():
                store.define(key, value)
            for paged_out in store.recovered(old, in_order=True):
                assert isinstance(paged_out, PagedOut)
                for messages in _page_in_all(paged_out, store, store.turned):
                    _move(store, messages, old, new)
                    moved += messages.count
        return moved

    def drop(self, queue_id: int) -> None:
        """Ends all messages of a queue id. Raises `OSError`."""
        with self._open() as store:
            store.drop(_Identity(queue_id))

    def release(self, name: str) -> None:
        """Lets go of a file that is `unreadable` as soon as nothing in it is wanted. Raises
        `OSError`."""
        with self._open() as store:
            store.segments[number_of(name)].is_fenced = False

    def change(self, changes: Mapping[bytes, bytes | None]) -> None:
        """All of them or none; they are kept when this returns. Raises `OSError`."""
        with self._open() as store, store.together():
            for key, value in changes.items():
                store.define(key, value)
        self.definitions = dict(store.definitions)

    @contextmanager
    def _open(self) -> Iterator[DurableStore]:
        """What is done inside is kept afterwards. Raises `OSError`."""
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
        """Nothing is held open between calls."""


def open_offline(directory: Path) -> OfflineLog:
    """`directory` is the data directory of a stopped server.

    Raises `ConfigError` if there is none in it, or one that is damaged or of a newer Warren.
    """
    if not (directory / LOG).is_dir():
        raise ConfigError(f"{directory}: no data of a server; give the directory that it ran with")
    return OfflineLog(RealDisk(directory / LOG))


@dataclass(frozen=True, slots=True)
class _Identity:
    """A queue as the store knows it."""

    id: int
    durable: bool = True
    has_consumers: bool = False


class _PagingIn(Protocol):
    def page_in(
        self, paged_out: PagedOut, ready: Callable[[Sequence[MessageRange]], None]
    ) -> None: ...


def _page_in_all(
    paged_out: PagedOut, store: _PagingIn, deliver: Callable[[], object]
) -> Iterator[MessageRange]:
    """The messages of a range, a megabyte at a time; they are let go of when the next is read."""
    part = location_of(paged_out).part
    while paged_out.count:
        read: list[MessageRange] = []
        store.page_in(paged_out, read.extend)
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
class Finding:
    """What was found in one file: how much of it is sound, and what is not."""

    name: str
    records: int
    size: int
    faults: tuple[str, ...]


def verify(disk: Disk) -> Iterator[Finding]:
    """Checks every byte that is protected by a checksum; reads only. Raises `OSError`."""
    logs = [name for name in disk.names() if name.endswith(LOG_SUFFIX)]
    for name in disk.names():
        if name.endswith(LOG_SUFFIX):
            yield _verified(disk, name, partial(_verify_segment, is_last=name == logs[-1]))
        elif name.endswith(STATE_SUFFIX):
            yield _verified(disk, name, _verify_checkpoint)


def _verified(disk: Disk, name: str, check: Callable[[str, bytes], Finding]) -> Finding:
    file = disk.open(name)
    try:
        data, error = salvage(file, 0, file.size())
    finally:
        file.close()
    found = check(name, data)
    if error is None:
        return found
    unread = f"it can't be read in places: {reason_of(error)}"
    return replace(found, faults=(unread, *found.faults))


def _verify_segment(name: str, data: bytes, *, is_last: bool) -> Finding:
    faults = []
    try:
        read_file_header(name, data)
    except DamagedHeader as error:
        faults.append(str(error))  # Its records are checked by themselves.
    except ConfigError as error:
        return Finding(name, 0, len(data), (str(error),))
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
    return Finding(name, records, len(data), tuple(faults))


def _verify_checkpoint(name: str, data: bytes) -> Finding:
    try:
        read_file_header(name, data)
        state = decode(data)
    except (ConfigError, ValueError) as error:
        return Finding(name, 0, len(data), (str(error),))
    return Finding(name, len(state.definitions), len(data), ())
