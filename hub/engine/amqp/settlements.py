"""Acknowledges and drops the deliveries of a channel, many at a time."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from aiormq.abc import AbstractChannel

from ....core.errors import ChannelError
from .failures import translated

log = logging.getLogger(__name__)


class ChannelSettlements:
    """The unacknowledged deliveries of a channel with one consumer, by delivery tag.

    What was settled is sent in the next iteration of the event loop. If the channel is lost first,
    RabbitMQ delivers those messages again.
    """

    def __init__(self, channel: AbstractChannel) -> None:
        self._channel: Final = channel
        self._unsettled: OrderedDict[int, None] = OrderedDict()
        self._acked: set[int] = set()
        self._dropped: list[int] = []
        self._sending: asyncio.Task[None] | None = None
        self.is_lost = False

    def delivered(self, tag: int) -> None:
        self._unsettled[tag] = None

    def ack(self, tag: int) -> None:
        self._acked.add(tag)
        self._send_soon()

    def drop(self, tag: int) -> None:
        """Takes the message from its queue, which may dead-letter it."""
        self._dropped.append(tag)
        self._send_soon()

    async def sent(self) -> None:
        """Returns when all that was settled is sent, or the channel is lost."""
        while self._sending is not None:
            await asyncio.wait([self._sending])

    def _send_soon(self) -> None:
        if self._sending is None and not self.is_lost:
            self._sending = asyncio.create_task(self._send())

    async def _send(self) -> None:
        try:
            with translated():
                while self._acked or self._dropped:
                    for tag, is_multiple in self._acks():
                        await self._channel.basic_ack(tag, is_multiple, wait=False)
                    dropped, self._dropped = self._dropped, []
                    for tag in dropped:
                        self._unsettled.pop(tag, None)
                        await self._channel.basic_nack(tag, requeue=False, wait=False)
        except ChannelError as error:
            self.is_lost = True
            log.info("deliveries are not settled and will come again: %s", error)
        finally:
            self._sending = None

    def _acks(self) -> Iterator[tuple[int, bool]]:
        """Yields tags to be acknowledged, each with whether all before it are too."""
        acked, self._acked = self._acked, set()
        last = 0
        while self._unsettled and (first := next(iter(self._unsettled))) in acked:
            self._unsettled.popitem(last=False)
            acked.discard(first)
            last = first
        if last:
            yield last, True
        for tag in sorted(acked):
            self._unsettled.pop(tag, None)
            yield tag, False
