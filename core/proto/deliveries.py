"""The unacknowledged deliveries of a channel."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from ..errors import precondition_failed
from ..queue.unacked import DeliveryRange, Detached, Unacked

if TYPE_CHECKING:
    from ..queue.consumer import Consumer
    from ..queue.queue import Queue
    from .delivery_times import DeliveryTimes

SOURCES_MIN: Final = 64
"""Up to so many queues `sources` is not cleaned up."""


class Deliveries:
    """The deliveries of one channel, and which queues they may belong to."""

    __slots__ = ("_sources_max", "got_count", "sources", "times", "unacked")

    def __init__(self) -> None:
        self.unacked = Unacked()
        self.got_count = 0
        """Unacked messages from basic.get, which no prefetch limits."""
        self.sources: dict[Queue, None] = {}
        """The queues of the unacked messages; may hold others too (see `note_source`)."""
        self._sources_max = SOURCES_MIN
        self.times: DeliveryTimes | None = None
        """Delivery times of the unacked, for the consumer timeout; None before the first check."""

    def note_source(self, queue: Queue, consumers: Iterable[Consumer]) -> None:
        """Notes that unacked messages may belong to this queue; `consumers` are the channel's."""
        sources = self.sources
        sources[queue] = None
        if len(sources) > self._sources_max:
            consumed = {consumer.queue: None for consumer in consumers}
            unacked = {source: None for _, _, source in self.unacked.outstanding()}
            self.sources = {queue: None} | consumed | unacked
            self._sources_max = max(SOURCES_MIN, 2 * len(self.sources))

    def take(self, first: int, last: int, multiple: bool) -> list[DeliveryRange]:
        """Removes tags `first` to `last`, or with `multiple` all up to `last`; 0 means all.

        Raises `ChannelError` 406 for an unknown tag.
        """
        taken: list[DeliveryRange] | None
        if not multiple:
            taken = self.unacked.take(first, last)
        elif last == 0:
            taken = self.unacked.take_all()
        else:
            taken = self.unacked.take_up_to(last)
        if taken is None:
            raise precondition_failed(f"unknown delivery tag {last}")
        return taken

    def detach(self, last: int) -> Detached:
        """As `take` with `multiple`, for very many."""
        if not last:
            return self.unacked.detach_all()
        detached = self.unacked.detach_up_to(last)
        if detached is None:
            raise precondition_failed(f"unknown delivery tag {last}")
        return detached

    def uncount(self, settled: Iterable[DeliveryRange]) -> None:
        """Subtracts settled deliveries from the counts that prefetch limits."""
        for consumer, _, messages, _ in settled:
            count = messages.high - messages.low
            if consumer is None:
                self.got_count -= count
            else:
                consumer.unacked_count -= count
