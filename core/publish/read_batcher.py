"""Gathers the publishes of one socket read into batches.

The publish frames stay where they are: a message costs three offsets. Messages that differ in their
attributes, and rows of many alike messages, are batches of their own.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ..message.batch import Batch
from ..message.framed_batch import StridedBatch, framed_batch
from ..wire.properties import MessageAttributes
from .shares import Share, Shares, in_order

if TYPE_CHECKING:
    from ..context import BrokerContext
    from ..queue.queue import Queue
    from .target import PublishTarget

_COPY_FRACTION: Final = 4
"""A batch that uses less than a quarter of its read is copied out, to let the rest go."""


class PublishCount(NamedTuple):
    """Messages of one channel to one exchange; `target` is that of the last of them.

    `routed` are their copies in queues, `unrouted` those that no queue gets.
    """

    target: PublishTarget
    messages: int
    routed: int
    unrouted: int


class ReadBatcher:
    """Publishes of one read that will be one batch, and for which channels they are confirmed.

    The scanner appends to `starts`, `contents` and `ends` (the offsets of method frame, header
    frame and end) after `begin` where `data` or `attributes` differ, `switch` where `target` or
    `queues` do.
    """

    __slots__ = (
        "_broker", "_counted_at", "_counts", "_routed", "_share_start", "_shares", "_unrouted",
        "attributes", "contents", "data", "ends", "queues", "starts", "target",
    )  # fmt: skip

    def __init__(self, broker: BrokerContext) -> None:
        self._broker = broker
        self.data = b""
        self.starts: array[int] = array("I")
        self.contents: array[int] = array("I")
        self.ends: array[int] = array("I")
        self.attributes: MessageAttributes | None = None
        self.target: PublishTarget | None = None
        self.queues: tuple[Queue, ...] = ()
        self._share_start = 0
        self._shares: Shares | None = None
        self._counts: list[PublishCount] = []
        self._counted_at = self._routed = self._unrouted = 0
        """Messages in `_counts`; copies and unroutable ones among the messages after these."""

    def begin(self, data: bytes, attributes: MessageAttributes) -> None:
        """Begins another batch."""
        self.flush()
        self.data = data
        self.attributes = attributes

    def switch(self, target: PublishTarget) -> None:
        """Begins another share if the next message, with this target, goes to other queues."""
        before = self.target
        if (
            before is None
            or target.exchange is not before.exchange
            or target.publisher is not before.publisher
        ):
            self._close_count()
        elif target.queues != self.queues:
            self._close_share()
        self.target = target
        self.queues = target.queues

    def _close_share(self) -> None:
        end = len(self.starts)
        count = end - self._share_start
        if not count:
            return
        if self._shares is None:
            self._shares = {}
        selection = self._shares.get(self.queues)
        if selection is None:
            selection = self._shares[self.queues] = array("I")
        selection.extend(range(self._share_start, end))
        self._share_start = end
        if self.queues:
            self._routed += count * len(self.queues)
        else:
            self._unrouted += count

    def _close_count(self) -> None:
        """Closes the share, and the count of messages from one channel to one exchange."""
        self._close_share()
        count = len(self.starts) - self._counted_at
        if count and self.target is not None:
            self._counts.append(PublishCount(self.target, count, self._routed, self._unrouted))
            self._counted_at += count
            self._routed = self._unrouted = 0

    def flush(self) -> None:
        """Publishes what was gathered; called before anything else happens on the connection."""
        starts = self.starts
        if not starts:
            return
        self._close_count()
        shares, self._shares = self._shares, None
        counts, self._counts = self._counts, []
        contents, ends, data, attributes = self.contents, self.ends, self.data, self.attributes
        assert attributes is not None
        assert shares is not None
        self.starts, self.contents, self.ends = array("I"), array("I"), array("I")
        self._share_start = self._counted_at = 0
        self.queues = ()
        self.target = None
        self.attributes = None
        self.data = b""
        if (ends[-1] - starts[0]) * _COPY_FRACTION < len(data):
            base = starts[0]
            data = data[base : ends[-1]]
            starts, contents, ends = (
                array("I", [offset - base for offset in offsets])
                for offsets in (starts, contents, ends)
            )
        broker = self._broker
        batch = framed_batch(
            data,
            broker.store.reserve(len(starts)),
            attributes,
            broker.now_ms,
            starts,
            contents,
            ends,
        )
        self._publish(batch, in_order(shares), counts)

    def publish_row(
        self,
        target: PublishTarget,
        attributes: MessageAttributes,
        data: bytes,
        count: int,
        bounds: tuple[int, int, int, int],
    ) -> None:
        """Publishes messages that differ only in their body octets as a batch without offsets.

        `bounds` are the offsets of the first one's method frame, header frame and body octets, and
        the end of the last one.
        """
        self.flush()
        at, content, body, end = bounds
        stride = (end - at) // count
        layout = at, stride, content - at, body - at
        if (end - at) * _COPY_FRACTION < len(data):
            data = data[at:end]
            layout = 0, stride, content - at, body - at
        broker = self._broker
        batch = StridedBatch(
            data, broker.store.reserve(count), count, attributes, broker.now_ms, layout
        )
        queues = target.queues
        counted = PublishCount(target, count, count * len(queues), 0 if queues else count)
        self._publish(batch, [(queues, None)] if queues else [], (counted,))

    def _publish(
        self, batch: Batch, shares: Sequence[Share], counts: Sequence[PublishCount]
    ) -> None:
        commit = self._broker.publish(batch, shares)
        for target, count, routed, unrouted in counts:
            target.count(count, routed, unrouted)
            if target.confirming:
                target.publisher.published(count, commit)
