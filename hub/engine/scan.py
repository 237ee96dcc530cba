"""Scans a queue of the core: messages are dequeued, shown, and returned to their places.

That is no redelivery: flags and delivery counts stay as they were.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from ...core.broker import Broker
from ...core.message.batch import Batch
from ...core.message.envelope import split_envelope
from ...core.message.model import Message
from ...core.message.queue_entry import MessageRange
from ...core.queue.queue import Queue
from ...core.wire import properties as wire
from .port import UnackedMessage

CHUNK_MESSAGES = 100
CHUNK_BYTES = 1024 * 1024
SLICE = 2_000
"""Messages that are returned in one iteration of the event loop: some 5 ms."""
RESIDENT_BYTES = 8 * 1024 * 1024
"""The limit of scanned messages that stay in memory; further ones that are on disk are paged
out."""


class ScannedMessage:
    """A message of a scan; it can be settled until `look` returns."""

    __slots__ = ("_message", "_queue", "is_settled", "messages")

    def __init__(self, queue: Queue, messages: MessageRange) -> None:
        self._queue = queue
        self._message: Message | None = None
        self.is_settled = False
        self.messages = messages

    @property
    def message(self) -> Message:
        if self._message is None:
            entry = self.messages.entry
            batch, index = entry.batch, entry.index(self.messages.low)
            exchange, key = split_envelope(batch.envelope(index))
            properties = wire.decode(batch.properties(index))
            body = batch.body(index)
            self._message = Message(exchange, key, properties, body, self.messages.redelivered)
        return self._message

    @property
    def sequence(self) -> int:
        return self.messages.sequence

    def ack(self) -> None:
        if not self.is_settled:
            self.is_settled = True
            self._queue.settle(self.messages)

    def nack(self, *, requeue: bool) -> None:
        if not requeue and not self.is_settled:
            self.is_settled = True
            self._queue.reject(self.messages)


class Scan:
    """One scan of a queue."""

    def __init__(self, broker: Broker, queue: Queue) -> None:
        self._broker = broker
        self._queue = queue
        self._remaining: list[MessageRange] = []
        self._resident_bytes = 0
        self._batch: Batch | None = None
        """The batch of the last message that was shown."""

    async def run(
        self, handle: Callable[[Sequence[UnackedMessage]], Awaitable[bool]], limit: int
    ) -> bool:
        """Runs the scan; returns whether all messages were shown that were ready at the
        beginning."""
        self._queue.check_get()
        self._queue.note_use()
        self._broker.dispatch_now(self._queue)
        there = self._queue.ready_count
        left = min(limit, there)
        try:
            while left > 0:
                chunk = await self._take(min(left, CHUNK_MESSAGES))
                if not chunk:
                    return True
                left -= len(chunk)
                if not await self._handle(chunk, handle):
                    return False
                await asyncio.sleep(0)  # lets other tasks run
            return there <= limit
        finally:
            await self._return_all()

    async def _take(self, limit: int) -> list[ScannedMessage]:
        chunk: list[ScannedMessage] = []
        size = 0
        self._broker.tick()
        while len(chunk) < limit and size < CHUNK_BYTES:
            messages = self._queue.dequeue(limit - len(chunk))
            if messages is None:
                if chunk or not self._queue.ready_count:
                    break
                await self._arrival()
                continue
            size += messages.body_bytes()
            chunk += (
                ScannedMessage(
                    self._queue, MessageRange(messages.entry, at, at + 1, messages.redelivered)
                )
                for at in range(messages.low, messages.high)
            )
        return chunk

    async def _arrival(self) -> None:
        """Waits until the next message is in memory."""
        arrived: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.when_head_ready(lambda: None if arrived.done() else arrived.set_result(None))
        await arrived
        self._broker.tick()

    async def _handle(
        self,
        chunk: list[ScannedMessage],
        handle: Callable[[Sequence[UnackedMessage]], Awaitable[bool]],
    ) -> bool:
        try:
            return await handle(chunk)
        finally:
            self._broker.tick()
            for seen in chunk:
                if not seen.is_settled:
                    seen.is_settled = True  # it can't be settled any more
                    self._keep(seen.messages)
            self._page_out(chunk)
            self._broker.on_work()

    def _keep(self, messages: MessageRange) -> None:
        last = self._remaining[-1] if self._remaining else None
        if (
            last is not None
            and (last.entry, last.high, last.redelivered)
            == (messages.entry, messages.low, messages.redelivered)
        ):  # fmt: skip
            last.high = messages.high
        else:
            self._remaining.append(
                MessageRange(messages.entry, messages.low, messages.high, messages.redelivered)
            )

    def _page_out(self, chunk: list[ScannedMessage]) -> None:
        for seen in chunk:
            batch, before = seen.messages.entry.batch, self._batch
            if before is not None and before is not batch:
                self._resident_bytes += before.size_bytes
                if (
                    self._resident_bytes > RESIDENT_BYTES
                    and before.resident
                    and before.location is not None
                ):
                    self._broker.store.batches.evict(before)
            self._batch = batch

    async def _return_all(self) -> None:
        remaining = self._remaining
        try:
            while remaining:
                # The newest first: each returns to the front of the queue.
                for _ in range(min(len(remaining), SLICE)):
                    self._queue.return_undelivered(remaining.pop())
                if not self._queue.has_consumers:  # a consumer would get the newest first
                    await asyncio.sleep(0)
        finally:
            while remaining:  # cancelled meanwhile
                self._queue.return_undelivered(remaining.pop())
            self._broker.on_work()
