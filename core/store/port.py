"""The interface between the broker and a message store.

It is asynchronous: what is appended gets a commit number that is committed later, and a batch may
not be resident, so whoever needs its bytes requests them with a callback. The store calls nothing
else of a queue.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from ..message.batch import Batch, MemoryUsage, MessageRange, PagedOut, QueueEntry
from ..slices import Pause, Steps
from .record_cache import RecordCache

BEHIND_BYTES = 16 * 1024 * 1024
"""How many bytes may wait for the disk; beyond it publishers of persistent messages are blocked
until half of it is written."""


class Browsed(NamedTuple):
    """Messages read of a paged-out range, each range with the position of its first message; those
    between and up to `end` could not be read."""

    ranges: list[tuple[int, MessageRange]]
    end: int


class Split(NamedTuple):
    """The front of a range as a range of its own, and its size on disk."""

    paged_out: PagedOut
    size_bytes: int


class QueueIdentity(Protocol):
    """A queue as the store knows it; ids are never reused."""

    @property
    def id(self) -> int: ...
    @property
    def durable(self) -> bool: ...
    @property
    def has_consumers(self) -> bool:
        """Whether it has consumers, so that new messages may be delivered at once."""


class ManySettled(Protocol):
    """Messages that are settled together: first all of them are noted, then logged in one record,
    then each is counted, unless its queue was deleted."""

    def note(self, queue_id: int, messages: MessageRange) -> None: ...
    def forget(self, queue_id: int) -> None:
        """Drops the notes of a queue that was deleted before `log`."""

    def log(self) -> None:
        """Logs all that is noted, as part of a group if one is open."""

    def count(self, messages: MessageRange) -> None: ...
    def end(self) -> None:
        """Ends it when all are counted: a checkpoint may be made."""


class Store(Protocol):
    memory: MemoryUsage
    """Counts the batches that become resident; the broker sets it."""

    is_damaged: bool
    """Whether something in the log could not be read; what refers to it can't be served."""

    def reserve(self, count: int) -> int:
        """Returns the first of `count` new sequence numbers, never used before by any process."""

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

    def settle(self, queue: QueueIdentity, messages: MessageRange) -> None:
        """Settles messages of a durable queue."""

    def many_settled(self) -> ManySettled:
        """Begins to settle very many messages in one record, noted and counted in slices."""

    def discard(self, queue: QueueIdentity, paged_out: PagedOut) -> Steps:
        """Settles a paged-out range, oldest messages first, in steps that may wait for an index.
        Pending reads of it are dropped."""

    def delivered(self, queue: QueueIdentity, sequence: int) -> int:
        """Marks messages of a durable queue up to this number as delivered: after a crash they
        come back redelivered. Those appended while the queue is read are marked already.

        Returns the commit number to wait for, 0 if the mark is committed already.
        """

    def define(self, key: bytes, value: bytes | None) -> int:
        """Stores a definition (a queue, a user ...) under its key, or deletes it with None.

        Returns a commit number; nobody has to wait for it. `drop` comes before a queue's deletion.
        """

    @property
    def definitions(self) -> Mapping[bytes, bytes]:
        """All definitions, in the order in which their keys were defined first."""

    def recovered(
        self, queue: QueueIdentity, *, ranks: bool = False, in_order: bool = False
    ) -> Sequence[PagedOut]:
        """The messages that an earlier process left in a queue, oldest first; called once, when the
        queue is made from its definition. Reads none of them. `ranks` if the queue orders by
        priority: then ranges whose messages may have one are `special`. For `in_order` see
        `page_out`."""

    def next_offset(self, queue: QueueIdentity) -> int:
        """The offset of a stream's next message by what is left of it; 0 if nothing is. For the
        start, as `recovered`."""

    def restored(self) -> None:
        """Called when all queues are made from their definitions; logs messages of no queue."""

    @property
    def quarantine(self) -> Mapping[int, int]:
        """How many messages belong to no queue, by queue id: no `recovered` was called for it, as
        its definition was lost. They are kept until `drop`."""

    @property
    def unreadable(self) -> Mapping[str, str]:
        """Files that are damaged or can't be read in places, and why; as far as this process has
        read, and those that an earlier start could not read."""

    def set_aside_files(self) -> Mapping[str, int]:
        """Files with copies of damaged bytes, and their sizes; reads the disk."""

    def drop(self, queue: QueueIdentity) -> Iterator[None]:
        """Settles all messages of a deleted queue at once; the returned steps free memory."""

    def together(self) -> AbstractContextManager[None]:
        """Makes what is appended, settled and defined inside atomic."""

    def barrier(self) -> int:
        """A commit number that covers everything up to now; 0 if all of it is committed."""

    @property
    def committed(self) -> int:
        """The highest commit number that is synced; those before are too, but for the refused."""

    @property
    def refused(self) -> int:
        """Commit numbers above `committed` and up to this one are refused: the disk is full or has
        failed."""

    @property
    def behind_bytes(self) -> int:
        """How many bytes wait for the disk."""

    behind_max_bytes: int
    """How many may wait: `BEHIND_BYTES`, or less on a small disk, so that what is under way when
    the disk fills still fits into the reserve."""

    @property
    def cache(self) -> RecordCache:
        """Recently read records, in memory as long as there is enough of it."""

    @property
    def is_short(self) -> bool:
        """Whether the disk is so full that the reserve for acks is used."""

    def on_commit(self, callback: Callable[[], None]) -> None:
        """Sets the callback for commits: it runs on the broker's thread whenever `committed` or
        `refused` has grown."""

    def request(self) -> None:
        """Requests a sync of all that was appended up to now."""

    def turned(self) -> int | None:
        """Called at the end of each turn: what it appended may be written. Returns in how many
        milliseconds to call again, None for not before something new is appended."""

    def fetch(self, batch: Batch, ready: Callable[[], None]) -> None:
        """Makes a batch resident, then calls `ready` in a later turn."""

    def page_in(
        self,
        paged_out: PagedOut,
        ready: Callable[[Sequence[MessageRange]], None],
        *,
        is_urgent: bool = True,
    ) -> None:
        """Reads the oldest messages of `paged_out`; in a later turn removes them from it and calls
        `ready` with them, in order. No ranges: `paged_out` has been discarded meanwhile. Requests
        that are not urgent are read when there are no others."""

    def hurry(self, paged_out: PagedOut) -> None:
        """Makes a request of `page_in` urgent."""

    def browse(
        self, paged_out: PagedOut, position: int, ready: Callable[[Browsed | None], None]
    ) -> None:
        """Reads messages of `paged_out` from that position on, about a megabyte, and leaves them
        where they are; `ready` gets them in a later turn, None if the range has changed
        meanwhile."""

    def size_of(self, entry: QueueEntry) -> int:
        """About how many bytes an entry takes on disk; in memory, if it was not just appended."""

    def weigh(self, paged_out: PagedOut) -> Generator[Pause, None, int]:
        """As `size_of`, for a paged-out range; in steps that may wait for an index."""

    def split(self, paged_out: PagedOut, size_bytes: int) -> Generator[Pause, None, Split | None]:
        """Splits the oldest records, of that size together, off a range of which nothing is
        settled; None if there are no more. In steps that may wait for an index."""

    @property
    def leaving_bytes(self) -> int:
        """Bytes of batches that leave memory when they are written."""

    def evict(self, batch: Batch) -> bool:
        """Evicts a batch's bytes from memory; False if they can't leave it yet."""

    def page_out(
        self, messages: MessageRange, before: PagedOut | None, *, in_order: bool = False
    ) -> PagedOut | None:
        """Pages out messages that were never delivered: extends the range `before`, or makes a new
        one. None if the store can't find them again that way, or if the queue must know each of
        them, which a queue that delivers `in_order`, whatever priority and expiration, need not."""
