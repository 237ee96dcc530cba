"""The part of the port that reads streams and publishes transactions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from ...core.message.model import ReadMessages, Row
from ...core.message.stream_read import StreamRead
from .values import StreamArchives, StreamState, TransactionOutcome

if TYPE_CHECKING:
    from ...core.auth import User
    from ...core.definitions.committed import CommittedTransaction


class BulkConsumer(Protocol):
    """A consumer that takes messages many at a time and acknowledges none: a message has left its
    queue when it is taken."""

    def pause(self) -> None:
        """Stops taking messages until `resume`; further ones stay in the queue."""

    def resume(self) -> None: ...
    def end(self) -> None:
        """Ends the consumer; an auto-delete queue is deleted with its last one."""


class Stream(Protocol):
    """The stored messages of a stream queue, or of an exchange that keeps messages."""

    def state(self) -> StreamState | None:
        """Returns the state of what is on disk; None if the stream was deleted."""

    async def chunks(
        self, start: int, end: int, limit_bytes: int, *, skip_damaged: bool
    ) -> StreamRead | None:
        """Reads chunks with the messages from `start` to `end - 1`, up to about `limit_bytes` but
        at least one; None if the message at `start` was dropped meanwhile. What can't be read ends
        the answer, or is all of it; with `skip_damaged` it is left out."""

    async def measure(self, start: int, limit_bytes: int) -> int | None:
        """Returns an offset such that the chunks from `start` on have about `limit_bytes` at most,
        or are one; None if the message at `start` was dropped meanwhile."""

    async def find_moment(self, wall_ms: int) -> int:
        """Returns the offset of the first message that arrived at this time or later."""

    def follow(
        self,
        start: int,
        keys: Sequence[str],
        *,
        on_messages: Callable[[Sequence[int], ReadMessages], None],
        on_gap: Callable[[int, int], None],
        on_end: Callable[[Exception | None], None],
    ) -> BulkConsumer:
        """Reads messages from an offset on as they are committed, once `resume` is called; of an
        exchange's those that one of the binding keys matches, all without any. `on_messages` gets
        offsets, and a function that reads their messages, to be called at once or never; `on_gap`
        two offsets between which messages are missing; `on_end` is called when the stream is
        deleted, and with the error that stopped the reading.

        Raises `ChannelError` for keys that can't be bound.
        """

    def archives(self) -> StreamArchives: ...
    async def report_archive(self, archive: str, offset: int, manifest: str) -> bool:
        """Stores that an archive has all messages before `offset`, so that retention may drop
        them; false if the disk is full."""

    async def forget_archive(self, archive: str) -> bool:
        """Forgets an archive; false if the disk is full."""


class TransactionLog(Protocol):
    """Publishes transactions, and knows the last one of each series.

    Raises `ChannelError` 404 if the virtual host does not exist.
    """

    def last(self, series: str) -> CommittedTransaction | None:
        """Returns the last transaction of a series that was committed."""

    def forget(self, series: str) -> None:
        """Forgets a series that does not go on."""

    async def publish(
        self,
        user: User | None,
        exchange: str,
        rows: AsyncIterator[Sequence[Row]],
        series: str,
        number: int,
        *,
        max_bytes: int,
    ) -> TransactionOutcome:
        """Publishes all rows with the user's permissions, None for the hub itself, in order, as one
        group of the log, which also has that this transaction was committed.

        Raises `ChannelError` or `ConnectionFault` for a row that may not be published, and
        `QueueFull` if a queue would refuse some of them, and `LowOnMemory`; nothing is published
        then.
        """

    async def synced(self) -> bool:
        """Returns true when everything so far is on disk, or false if the disk is full."""
