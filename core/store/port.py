"""What the broker asks of a message store.

Asynchronous from the first day: what is appended gets a commit number that becomes true later,
and a batch may not be resident, so whoever needs its bytes asks for them and comes back. The
store never calls into a queue on its own except through the callbacks that it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from ..message.batch import Batch, MemoryUsage, MessageRange, PagedOut, QueueEntry
from ..slices import Pause, Steps
from .record_cache import RecordCache

BEHIND_BYTES = 16 * 1024 * 1024
"""What may wait for the disk, at most; beyond it publishers of persistent messages wait for half
of it."""


class Browsed(NamedTuple):
    """Messages of a range, each range with the position of its first; what lies between and up to
    `end` could not be read."""

    ranges: list[tuple[int, MessageRange]]
    end: int


class Split(NamedTuple):
    """The front of a range as one of its own, and what it takes on disk."""

    paged_out: PagedOut
    size_bytes: int


class QueueIdentity(Protocol):
    """What the store knows of a queue; ids are never reused."""

    @property
    def id(self) -> int: ...
    @property
    def durable(self) -> bool: ...
    @property
    def has_consumers(self) -> bool:
        """Whether it has consumers, so that what comes in may be delivered at once."""


class ManySettled(Protocol):
    """Messages that are done with together. First all of them are noted, then they are logged,
    in one record, then each is counted, unless its queue has ended."""

    def note(self, queue_id: int, messages: MessageRange) -> None: ...
    def forget(self, queue_id: int) -> None:
        """The queue has ended before `log`."""

    def log(self) -> None:
        """As part of a group, if one is open."""

    def count(self, messages: MessageRange) -> None: ...
    def end(self) -> None:
        """All are counted: a checkpoint may be made."""


class Store(Protocol):
    memory: MemoryUsage
    """What is made resident is counted here; the broker says where."""

    is_damaged: bool
    """Something that was kept could not be read; what refers to it can't be served."""

    def reserve(self, count: int) -> int:
        """The first of `count` sequence numbers that nobody had before, in this life or a
        former one."""

    def append(
        self,
        batch: Batch,
        entries: Sequence[tuple[QueueIdentity, QueueEntry]],
        offsets: Sequence[tuple[int, int]] = (),
    ) -> int:
        """Keeps a batch of persistent messages for durable queues, each with its entry of it.

        `offsets` are ids of those that number their messages, each with the number of the first.
        Gives the commit number to wait for, 0 if there is nothing to wait for.
        """

    def settle(self, queue: QueueIdentity, messages: MessageRange) -> None:
        """These messages of a durable queue are done with."""

    def many_settled(self) -> ManySettled:
        """For very many messages that are settled as a whole, though naming them takes long."""

    def discard(self, queue: QueueIdentity, paged_out: PagedOut) -> Steps:
        """As `settle` for messages that are not in memory, in steps, which may wait for an index;
        the oldest go first. What is just being read of them does not arrive any more."""

    def delivered(self, queue: QueueIdentity, sequence: int) -> int:
        """Messages of a durable queue up to this number may go out from now on: after a crash
        they are redelivered. Those that come in while the queue is read need no word.

        Gives the number of the commit that keeps it, 0 if it is known already.
        """

    def define(self, key: bytes, value: bytes | None) -> int:
        """Keeps a definition (a queue, a user ...) under its key, or ends it with None.

        Gives a commit number; nobody has to wait for it. `drop` comes before a queue's end.
        """

    @property
    def definitions(self) -> Mapping[bytes, bytes]:
        """What is defined, in the order in which keys came up first."""

    def recovered(
        self, queue: QueueIdentity, *, ranks: bool = False, in_order: bool = False
    ) -> Sequence[PagedOut]:
        """What an earlier process left in a queue, oldest first; asked once, when the queue is
        made from its definition. Nothing of it is read. `ranks` if the queue orders by priority:
        where messages may have one, that is said of their range. For `in_order` see `page_out`."""

    def next_offset(self, queue: QueueIdentity) -> int:
        """The number that the next message of a queue gets which numbers its messages, as far as
        what is left of it says; 0 if that says nothing. For the start, as `recovered`."""

    def restored(self) -> None:
        """All definitions were made into queues: what belongs to none of them is told."""

    @property
    def quarantine(self) -> Mapping[int, int]:
        """Messages that nobody has asked for with `recovered`, counted by queue id: their queue's
        definition was lost. They are kept until `drop` ends them."""

    @property
    def unreadable(self) -> Mapping[str, str]:
        """Files that can't be read in places, or are damaged there, and why; as far as this
        process has seen, and those that an earlier start could not read."""

    def set_aside_files(self) -> Mapping[str, int]:
        """Files with damaged bytes that were copied aside, and their sizes; reads the disk."""

    def drop(self, queue: QueueIdentity) -> Iterator[None]:
        """The queue has ended, and with it all that was kept for it; the steps only free memory."""

    def together(self) -> AbstractContextManager[None]:
        """What is appended, settled and defined inside is kept as a whole or not at all."""

    def barrier(self) -> int:
        """A commit number that is true as soon as everything up to now is kept, 0 if it is."""

    @property
    def committed(self) -> int:
        """All commit numbers up to this one are true, but for the refused."""

    @property
    def refused(self) -> int:
        """Commit numbers above `committed` and up to this one will not be kept: the disk is
        full or has failed. Whoever waits for one is told so now."""

    @property
    def behind_bytes(self) -> int:
        """What waits for the disk."""

    behind_max_bytes: int
    """What may wait for it: `BEHIND_BYTES`, or less on a small disk, so that what is under way
    when it fills still fits into what is set aside."""

    @property
    def cache(self) -> RecordCache:
        """Copies of what is on disk, in memory as long as there is enough of it."""

    @property
    def is_short(self) -> bool:
        """The disk is so full that what is set aside for acks is used."""

    def on_commit(self, callback: Callable[[], None]) -> None:
        """`callback` runs on the broker's thread whenever `committed` or `refused` has grown."""

    def request(self) -> None:
        """Somebody waits for all that was appended up to now."""

    def turned(self) -> int | None:
        """A turn is over: what it appended may be written. Gives in how many milliseconds the
        store wants to be called again, None for not before there is something new."""

    def fetch(self, batch: Batch, ready: Callable[[], None]) -> None:
        """Makes a batch resident, then calls `ready` in a later turn."""

    def page_in(
        self,
        paged_out: PagedOut,
        ready: Callable[[Sequence[MessageRange]], None],
        *,
        is_urgent: bool = True,
    ) -> None:
        """Reads the oldest messages of `paged_out`; in a later turn takes them off it and gives
        them, in order. No ranges at all: `paged_out` has been discarded meanwhile. What is not
        urgent is read when nothing else is wanted."""

    def hurry(self, paged_out: PagedOut) -> None:
        """A range that was asked for without urgency is awaited now."""

    def browse(
        self, paged_out: PagedOut, position: int, ready: Callable[[Browsed | None], None]
    ) -> None:
        """Reads messages of `paged_out` from that position on, about a megabyte, and leaves them
        where they are; `ready` gets them in a later turn, None if the range has changed
        meanwhile."""

    def size_of(self, entry: QueueEntry) -> int:
        """About what an entry takes on disk, which was just appended; if it was not, in memory."""

    def weigh(self, paged_out: PagedOut) -> Generator[Pause, None, int]:
        """As `size_of`, for a range; in steps, which may wait for an index."""

    def split(self, paged_out: PagedOut, size_bytes: int) -> Generator[Pause, None, Split | None]:
        """Takes the oldest records off a range of which nothing is settled, as many as have that
        size; None if there are no more. In steps, which may wait for an index."""

    @property
    def leaving_bytes(self) -> int:
        """Of batches that leave memory when they are written."""

    def evict(self, batch: Batch) -> bool:
        """Lets a batch's bytes leave memory; False if they can't yet."""

    def page_out(
        self, messages: MessageRange, before: PagedOut | None, *, in_order: bool = False
    ) -> PagedOut | None:
        """Messages nobody has seen yet, as a range that needs no memory for each: `before`
        made longer, or a new one. None if the store can't find them again that way, or if the
        queue must know each of them; not so a queue that gives its messages `in_order` of
        coming, whatever their priority and expiration."""
