"""Gets messages from the front of a queue for this process, as basic.get does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ..message.model import Message
from ..message.queue_entry import MessageRange
from ..queue.queue import Queue
from ..slices import for_each
from .reader import MessageReader

if TYPE_CHECKING:
    from ..broker import Broker


Settled = Callable[[], None]


def nothing() -> None:
    """Does nothing."""


class PulledMessage(NamedTuple):
    """An unacknowledged message, and how many were left behind it."""

    message: Message
    left: int
    messages: MessageRange


class PullRequest:
    """Gets up to `count` messages after `start`, and calls `done` with them, at once or later.

    They stay unacknowledged until they are settled in one of the ways below, once; `settled` is
    called then, at once or later. Getting and settling are sliced work. Raises `ConnectionFault`
    for a queue of which nothing can be got.
    """

    def __init__(
        self,
        broker: Broker,
        queue: Queue,
        count: int,
        max_bytes: int,
        done: Callable[[list[PulledMessage]], None],
    ) -> None:
        queue.check_get()
        queue.note_use()
        broker.tick()
        broker.dispatch_now(queue)
        self._broker = broker
        self._queue = queue
        self._left = count
        self._bytes_left = max_bytes
        self._done = done
        self._reader = MessageReader()
        self._is_asking = False
        self._got: list[PulledMessage] = []

    def start(self) -> None:
        """Gets messages until one has to be read from disk."""
        self._broker.slices.start(self._steps())
        self._broker.on_work()

    def _steps(self) -> Iterator[None]:
        while self._left > 0 and self._bytes_left > 0:
            self._is_asking, before = True, self._left
            self._queue.when_head_ready(self._take)
            self._is_asking = False
            if self._left == before:
                return  # `_take` is called later.
            yield
        self._done(self._got)

    def _take(self) -> None:
        messages = self._queue.dequeue(1)
        if messages is not None:
            self._add(messages)
        elif self._queue.ready_count:  # Expired while it was read, and the next one is on disk.
            self._queue.when_head_ready(self._take)
            return
        else:
            self._left = 0
        if not self._is_asking:
            self.start()

    def _add(self, messages: MessageRange) -> None:
        message = self._reader.read(self._queue.with_headers(messages))
        self._got.append(PulledMessage(message, self._queue.ready_count, messages))
        self._left -= 1
        self._bytes_left -= len(message.body)

    # -- settling

    def acknowledge(self, settled: Settled = nothing) -> None:
        self._settle(self._queue.settle, settled, no_ack=True)

    def reject(self, settled: Settled = nothing) -> None:
        """Dead-letters or drops the messages."""
        self._settle(self._queue.reject, settled, no_ack=False)

    def requeue(self, settled: Settled = nothing, *, failed: bool) -> None:
        """Returns the messages to their positions, flagged as redelivered."""
        requeue = partial(self._queue.requeue, failed=failed)
        self._settle(requeue, settled, no_ack=False)

    def give_back(self) -> None:
        """Returns the messages to their positions as if they had not been fetched."""
        self._settle(self._queue.return_undelivered, nothing, no_ack=None)

    def _settle(
        self, settle: Callable[[MessageRange], None], settled: Settled, *, no_ack: bool | None
    ) -> None:
        """Settles and counts the messages; None for `no_ack` counts nothing."""
        self._broker.tick()
        self._broker.slices.start(self._settling(settle, settled, no_ack))
        self._broker.on_work()

    def _settling(
        self, settle: Callable[[MessageRange], None], settled: Settled, no_ack: bool | None
    ) -> Iterator[None]:
        got, self._got = self._got, []

        def settle_one(one: PulledMessage) -> None:
            if no_ack is not None:
                self._count(one.messages.redelivered, no_ack=no_ack)
            settle(one.messages)

        yield from for_each(reversed(got), settle_one)
        if no_ack is not None and not got:
            self._broker.statistics.got_nothing(self._queue, None)
        settled()

    def _count(self, redelivered: bool, *, no_ack: bool) -> None:
        statistics, queue = self._broker.statistics, self._queue
        statistics.got(queue, None, no_ack=no_ack, redelivered=redelivered)
        if not no_ack:
            statistics.rejected(queue, None, 1)
