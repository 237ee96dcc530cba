"""Decodes messages for applications in this process."""

from __future__ import annotations

from collections.abc import Sequence

from ..message.envelope import split_envelope
from ..message.framed_batch import StridedBatch
from ..message.model import Message, Properties
from ..message.queue_entry import MessageRange, QueueEntry
from ..wire import properties as wire


class MessageReader:
    """Decodes messages. Consecutive ones with equal properties share one `Properties`, and so for
    exchange and key: most messages of a queue differ in little but their bodies."""

    __slots__ = ("_envelope", "_exchange_and_key", "_properties", "_raw")

    def __init__(self) -> None:
        self._envelope = self._raw = b""
        self._exchange_and_key = ("", "")
        self._properties = Properties()

    def read(self, messages: MessageRange) -> Message:
        """Returns the first message of a range."""
        return self._read(messages.entry, messages.low, messages.redelivered)

    def read_all(
        self, messages: MessageRange, rewritten: MessageRange
    ) -> list[tuple[int, Message]]:
        """Returns the messages of a range with their sequence numbers; `rewritten` are the same,
        with the headers that their queue adds."""
        entry, source, shift = messages.entry, rewritten.entry, rewritten.low - messages.low
        batch = source.batch
        if isinstance(batch, StridedBatch):
            # They differ in their bodies alone.
            first = self._read(source, rewritten.low, messages.redelivered)
            exchange, key, properties = first.exchange, first.routing_key, first.properties
            return [
                (
                    entry.sequence(at),
                    Message(
                        exchange, key, properties, batch.body(source.index(at + shift)),
                        messages.redelivered,
                    ),
                )
                for at in range(messages.low, messages.high)
            ]  # fmt: skip
        return [
            (entry.sequence(at), self._read(source, at + shift, messages.redelivered))
            for at in range(messages.low, messages.high)
        ]

    def read_positions(
        self, messages: MessageRange, positions: Sequence[int]
    ) -> list[tuple[int, Message]]:
        """Returns the messages of a range at these positions, with their sequence numbers."""
        entry = messages.entry
        return [
            (entry.sequence(at), self._read(entry, at, messages.redelivered)) for at in positions
        ]

    def _read(self, entry: QueueEntry, position: int, redelivered: bool) -> Message:
        batch, index = entry.batch, entry.index(position)
        head, raw = batch.envelope(index), batch.properties(index)
        if head != self._envelope:
            self._exchange_and_key = split_envelope(head)
            self._envelope = head
        if raw != self._raw:
            self._properties = wire.decode(raw)
            self._raw = raw
        exchange, key = self._exchange_and_key
        return Message(exchange, key, self._properties, batch.body(index), redelivered)
