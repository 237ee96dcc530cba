"""Keeps the replies of a channel in order while one of them waits.

A reply waits for the disk (tx.commit) or for replayed messages (queue.bind). Clients match replies
to methods by their order (AMQP 0-9-1 2.2.2), so none may overtake another. Deliveries wait too
once a second reply does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ..errors import ChannelError, precondition_failed
from ..wire.frames import method_frame
from ..wire.method_ids import TX_COMMIT, TX_COMMIT_OK

if TYPE_CHECKING:
    from .context import ChannelContext

_ENTRY_BYTES: Final = 128
"""Estimated memory of a waiting reply beside its bytes."""


class _Promise:
    """A reply that waits until it is `due`."""

    __slots__ = ("data", "due")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.due = False


class CommitReply:
    """The reply to a tx.commit. Frames sent inside of its context go out before it."""

    __slots__ = ("_replies", "complete", "data", "number")

    def __init__(self, replies: Replies) -> None:
        self._replies = replies
        self.data = bytearray()
        self.number: int | None = None
        """The commit number to wait for; None while that is not known."""
        self.complete = True

    def __enter__(self) -> None:
        self._replies.applied = self

    def __exit__(self, *_: object) -> None:
        self._replies.applied = None

    def decide(self, number: int, complete: bool) -> None:
        """Sets the commit number; `complete` if every queue accepted its messages."""
        self.number, self.complete = number, complete
        self._replies.go_on()


_Entry = CommitReply | _Promise | bytes | bytearray


class Replies:
    """The waiting replies of a channel, in order."""

    __slots__ = ("_channel", "_listens", "_waiting", "_waiting_bytes", "applied")

    def __init__(self, channel: ChannelContext) -> None:
        self._channel = channel
        self._waiting: deque[_Entry] = deque()
        self._waiting_bytes = 0
        self._listens = False
        self.applied: CommitReply | None = None
        """The reply of the commit that is being applied, while others may wait."""

    def commit(self, number: int, complete: bool) -> None:
        """Adds commit-ok, to be sent when the store has committed `number`."""
        self.expect().decide(number, complete)

    def expect(self) -> CommitReply:
        """As `commit`, when the number is not known yet."""
        reply = CommitReply(self)
        self._append(reply)
        return reply

    def promise(self, data: bytes) -> Callable[[], None]:
        """Adds a reply, to be sent when the returned function is called."""
        promise = _Promise(data)
        self._append(promise)

        def send() -> None:
            promise.due = True
            self.go_on()

        return send

    def enqueue(self, data: bytes | bytearray) -> bool:
        """Adds frames that have to wait; False if they can be written at once."""
        if self.applied is not None and self._waiting:
            self.applied.data += data
            self._count(len(data))
            return True
        if not self._waiting:
            return False
        self._channel.answers_wait = True
        self._append(data)
        return True

    def end(self) -> None:
        """Drops all waiting replies: the channel has closed."""
        self._waiting.clear()
        self._count(-self._waiting_bytes)
        self._channel.answers_wait = False

    def _append(self, entry: _Entry) -> None:
        self._waiting.append(entry)
        self._count(_size(entry))

    def _count(self, size: int) -> None:
        self._waiting_bytes += size
        self._channel.output.waiting_reply_bytes += size

    def go_on(self) -> None:
        """Sends the replies that are due, or closes the channel if a commit failed."""
        store, channel, waiting = self._channel.broker.store, self._channel, self._waiting
        while waiting:
            entry = waiting[0]
            if isinstance(entry, _Promise):
                if not entry.due:
                    return
                channel.output.write(entry.data)
            elif not isinstance(entry, CommitReply):
                channel.output.write(entry)
            elif entry.number is None:
                return
            elif entry.number > max(store.progress.committed, store.progress.refused):
                self._listen()
                return
            elif error := _error(entry.number > store.progress.committed, entry.complete):
                channel.connection.fail_channel(channel.number, error, TX_COMMIT)
                return
            else:
                channel.output.write(entry.data)
                channel.output.write(method_frame(channel.number, TX_COMMIT_OK))
            waiting.popleft()
            self._count(-_size(entry))
        if channel.answers_wait:
            channel.answers_wait = False
            channel.reopen_consumers()

    def _listen(self) -> None:
        if not self._listens:
            self._listens = True
            self._channel.broker.commits.on_next(self._decided)

    def _decided(self) -> None:
        self._listens = False
        self.go_on()


def _size(entry: _Entry) -> int:
    if isinstance(entry, CommitReply):
        return _ENTRY_BYTES + len(entry.data)
    return _ENTRY_BYTES + (len(entry) if isinstance(entry, bytes | bytearray) else 0)


def _error(lost: bool, complete: bool) -> ChannelError | None:
    if lost:
        return ChannelError(
            506,
            "transaction not durable: the disk is full or has failed, so its changes may be lost "
            "at a restart; free disk space, then repeat the transaction",
        )
    return None if complete else precondition_failed("partial tx completion")
