"""The interface between the broker and a message store.

It is asynchronous: an append returns a commit number that is committed later, and a batch may not
be resident, so its bytes are requested with a callback. The store calls nothing else of a queue.

A store is a `Store` with its `progress`, and with the parts that move messages between memory and
disk: `batches`, `ranges`, `page_in`, `browser` and `records`. `recovered` has what an earlier
process left.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from ..message.batch import Batch, MemoryUsage
from ..message.queue_entry import MessageRange, PagedOut, QueueEntry
from ..message.stream_read import RecordsWanted, StreamMeasure, StreamRead
from ..slices import Pause, Steps
from .progress import CommitProgress
from .record_cache import RecordCache
from .write_metrics import WriteMetrics


class QueueIdentity(Protocol):
    """The attributes of a queue that the store uses; ids are never reused."""

    @property
    def id(self) -> int: ...
    @property
    def durable(self) -> bool: ...
    @property
    def has_consumers(self) -> bool:
        """Whether it has consumers, so that new messages may be delivered at once."""


class ManySettled:
    """Messages that are settled together: first all of them are noted, then logged in one record,
    then each is counted, unless its queue was deleted. This class does nothing, for a store that
    writes nothing."""

    def note(self, queue_id: int, messages: MessageRange) -> None:
        """Adds messages to the record."""

    def forget(self, queue_id: int) -> None:
        """Drops the notes of a queue that was deleted before `log`."""

    def log(self) -> None:
        """Logs all that is noted, as part of a group if one is open."""

    def count(self, messages: MessageRange) -> None:
        """Counts messages as settled."""

    def end(self) -> None:
        """Notes that all are counted, so that a checkpoint may be made."""


class Batches:
    """Evicts batches from memory, and fetches their bytes again."""

    leaving_bytes = 0
    """Bytes of batches that leave memory when they are written."""

    def evict(self, batch: Batch) -> bool:
        """Evicts a batch's bytes from memory; False if they can't leave it yet."""
        return False

    def fetch(self, batch: Batch, ready: Callable[[], None]) -> None:
        """Makes a batch resident, then calls `ready` in a later turn."""
        raise NotImplementedError


class Split(NamedTuple):
    """The front of a range as a range of its own, and its size on disk."""

    paged_out: PagedOut
    size_bytes: int


class Ranges:
    """Makes paged-out ranges of messages, splits and sizes them."""

    def page_out(
        self, messages: MessageRange, before: PagedOut | None, *, in_order: bool = False
    ) -> PagedOut | None:
        """Pages out messages that were never delivered: extends the range `before`, or makes a new
        one. None if the store can't find them again that way, or if the queue needs priority and
        expiration of each message, which it does not if it delivers `in_order`."""
        return None

    def size_of(self, entry: QueueEntry) -> int:
        """Returns the approximate size of an entry on disk, or in memory if it was not appended
        recently."""
        return entry.batch.size_bytes * entry.count // entry.batch.count

    def weigh(self, paged_out: PagedOut) -> Generator[Pause, None, int]:
        """Returns about the size of a paged-out range on disk; its steps may wait for an index."""
        raise NotImplementedError

    def split(
        self, paged_out: PagedOut, size_bytes: int, max_messages: int
    ) -> Generator[Pause, None, Split | None]:
        """Splits off the oldest records, with a total of that size or as many messages at most,
        from a range of which nothing is settled; None if there are no others, or if the first
        record has more. In steps that may wait for an index."""
        raise NotImplementedError


class PageIn:
    """Reads paged-out ranges into memory."""

    def request(
        self,
        paged_out: PagedOut,
        ready: Callable[[Sequence[MessageRange]], None],
        *,
        is_urgent: bool = True,
    ) -> None:
        """Reads the oldest messages of `paged_out`; in a later turn removes them from it and calls
        `ready` with them, in order, or with none if `paged_out` has been discarded meanwhile.
        Requests that are not urgent are read when there are no others."""
        raise NotImplementedError

    def hurry(self, paged_out: PagedOut) -> None:
        """Makes a request urgent."""
        raise NotImplementedError


class Browsed(NamedTuple):
    """Messages read of a paged-out range, each range with the position of its first message; the
    messages between them and up to `end` could not be read."""

    ranges: list[tuple[int, MessageRange]]
    end: int


class Browser:
    """Reads paged-out messages without paging them in."""

    def browse(
        self,
        paged_out: PagedOut,
        position: int,
        ready: Callable[[Browsed | None], None],
        *,
        unsettled: bool = False,
    ) -> None:
        """Reads about a megabyte of messages of `paged_out` from that position on; calls `ready`
        with them in a later turn, or with None if the range has changed meanwhile.

        With `unsettled` it leaves out messages that a queue has settled: they have no position.
        """
        raise NotImplementedError


class StreamRecords:
    """Reads the records of durable streams as they lie in the log."""

    def read(
        self,
        wanted: RecordsWanted,
        limit_bytes: int,
        ready: Callable[[StreamRead | None], None],
        *,
        skip_damaged: bool = False,
    ) -> None:
        """Reads whole records, up to about `limit_bytes` but at least one, up to the first that is
        damaged. Calls `ready` in a later turn, with None if records were moved or dropped
        meanwhile."""
        raise NotImplementedError

    def measure(
        self,
        wanted: RecordsWanted,
        limit_bytes: int,
        ready: Callable[[StreamMeasure | None], None],
    ) -> None:
        """Measures the first records, as many as have at most `limit_bytes`, but at least one.
        Calls `ready` as `read` does."""
        raise NotImplementedError


class Recovered:
    """The messages that an earlier process left, and damage to them. This class is for a store
    that was empty."""

    is_damaged = False
    """Whether something in the log could not be read; whatever refers to it can't be served."""

    def of(
        self, queue: QueueIdentity, *, ranks: bool = False, in_order: bool = False
    ) -> Sequence[PagedOut]:
        """Returns the messages left in a queue, oldest first, without reading them; called once,
        when the queue is made from its definition. `ranks` if the queue orders by priority: ranges
        with messages that may have one are `special` then. For `in_order` see `Ranges.page_out`."""
        return ()

    def next_offset(self, queue: QueueIdentity) -> int:
        """Returns the offset of a stream's next message according to what is left of it, 0 if
        nothing is; called at the start, as `of` is."""
        return 0

    def complete(self) -> None:
        """Logs messages of no queue; called when all queues are made from their definitions."""

    @property
    def quarantine(self) -> Mapping[int, int]:
        """The number of messages without a queue, by queue id: its definition was lost, so `of` was
        not called for it. They are kept until `Store.drop`."""
        return {}

    @property
    def unreadable(self) -> Mapping[str, str]:
        """Files that are damaged or can't be read in places, with the reasons: those that this
        process has found, and those that an earlier start could not read."""
        return {}

    def set_aside_files(self) -> Mapping[str, int]:
        """Returns the files with copies of damaged bytes, and their sizes; reads the disk."""
        return {}


class Store:
    """Stores messages and definitions, in the order of the calls."""

    progress: CommitProgress
    batches: Batches
    ranges: Ranges
    page_in: PageIn
    browser: Browser
    records: StreamRecords
    recovered: Recovered

    write_metrics: WriteMetrics

    memory: MemoryUsage
    """The batches that are in memory."""

    cache: RecordCache
    """Recently read records, as long as memory is not short."""

    store_id: bytes
    """Identifies the data directory; empty if nothing outlives the process."""

    definitions: dict[bytes, bytes]
    """All definitions, in the order in which their keys were defined first."""

    def __init__(self, first_sequence: int) -> None:
        self._next_sequence = first_sequence

    def reserve(self, count: int) -> int:
        """Returns the first of `count` new sequence numbers, never used before by any process."""
        first = self._next_sequence
        self._next_sequence += count
        return first

    def append(
        self,
        batch: Batch,
        entries: Sequence[tuple[QueueIdentity, QueueEntry]],
        offsets: Sequence[tuple[int, int]] = (),
    ) -> int:
        """Stores a batch of persistent messages for durable queues, each with its entry of it.

        `offsets` are ids of streams, each with the offset of the first of these messages. Returns
        the commit number to wait for, 0 if there is nothing to wait for.
        """
        raise NotImplementedError

    def settle(self, queue: QueueIdentity, messages: MessageRange) -> None:
        """Settles messages of a durable queue."""
        raise NotImplementedError

    def persistent_count(self, queue: QueueIdentity) -> int:
        """Returns how many messages of a queue a restart would not lose; asks every segment."""
        raise NotImplementedError

    def many_settled(self) -> ManySettled:
        """Begins to settle very many messages in one record, noted and counted in slices."""
        raise NotImplementedError

    def discard(self, queue: QueueIdentity, paged_out: PagedOut) -> Steps:
        """Settles a paged-out range, oldest messages first, in steps that may wait for an index.
        Pending reads of it are dropped."""
        raise NotImplementedError

    def delivered(self, queue: QueueIdentity, sequence: int) -> int:
        """Marks messages of a durable queue up to this number as delivered: after a crash they are
        redelivered. Messages appended while the queue has consumers are marked already.

        Returns the commit number to wait for, 0 if the mark is committed already.
        """
        raise NotImplementedError

    def drop(self, queue: QueueIdentity) -> Iterator[None]:
        """Settles all messages of a deleted queue at once; the returned steps free memory."""
        raise NotImplementedError

    def define(self, key: bytes, value: bytes | None) -> int:
        """Stores a definition (a queue, a user ...) under its key, or deletes it with None.

        Returns a commit number; it is not necessary to wait for it. `drop` is called before a
        queue's definition is deleted.
        """
        raise NotImplementedError

    def together(self) -> AbstractContextManager[None]:
        """Makes everything that is appended, settled and defined inside atomic."""
        raise NotImplementedError

    def barrier(self) -> int:
        """Returns a commit number that covers everything so far; 0 if all of it is committed."""
        raise NotImplementedError

    def request(self) -> None:
        """Requests a sync of everything that was appended so far."""
        raise NotImplementedError

    def turned(self) -> int | None:
        """Submits everything that the turn has appended, and does other pending work; called after
        each turn. Returns in how many milliseconds to call again, None for not before something new
        is appended."""
        raise NotImplementedError

    @property
    def is_short(self) -> bool:
        """Whether the disk is so full that the reserve for acks is used."""
        return False
