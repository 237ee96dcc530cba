"""Messages that the broker makes itself, handed to their queues in as few blocks as possible.

A block for each would cost queues, log and consumers some 20 us a message; in one they cost 2.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, NamedTuple

from .block import ScatteredBlock, WholeBlock
from .marking import marked
from .proto.intake import in_order
from .wire.frames import BASIC, BODY, frame, header_frame, method_frame
from .wire.properties import PLAIN, Traits

if TYPE_CHECKING:
    from .broker import Broker
    from .queue.queue import Queue

_BLOCK_BYTES = 262_144
"""As much as one read brings: a block leaves memory and comes back in one piece."""
_TOGETHER_MAX_BYTES = 65_536
"""Larger messages are cut for each reader, so they stay whole."""
_CHANNEL, _PUBLISH = 1, 40


class Copy(NamedTuple):
    """A message, and the queues that it is for."""

    envelope: bytes
    properties: bytes
    body: bytes
    traits: Traits
    blind_keys: tuple[str, ...]
    queues: tuple[Queue, ...]
    is_sure: bool = False
    """Whether its queues take it although they would refuse a publish."""

    @property
    def is_plain(self) -> bool:
        """Whether its queues take it without a look, together with others."""
        if self.blind_keys or len(self.body) + len(self.properties) > _TOGETHER_MAX_BYTES:
            return False
        return not any(
            queue.rules is not None and (queue.rules.rejects or queue.marks)
            for queue in self.queues
        )


class Outbox:
    """Gathers copies; each queue gets its own in the order in which they were added."""

    __slots__ = ("_broker", "_head", "_head_of", "_pieces", "_places", "_shares", "_traits")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._head_of: tuple[bytes, bytes, int] | None = None
        self._head: tuple[bytes, bytes] = (b"", b"")
        self._clear(PLAIN)

    def _clear(self, traits: Traits) -> None:
        self._traits = traits
        self._pieces: list[bytes] = []
        self._places = array("I", [0])
        self._shares: dict[tuple[Queue, ...], array[int]] = {}

    def add(self, copy: Copy) -> None:
        if not copy.is_plain:
            self.flush()
            self._offer(copy)
            return
        if copy.traits is not self._traits or self._places[-1] >= _BLOCK_BYTES:
            self.flush()
            self._clear(copy.traits)
        selection = self._shares.get(copy.queues)
        if selection is None:
            selection = self._shares[copy.queues] = array("I")
        selection.append(len(self._places) // 2)
        method, header = self._framed(copy)
        body = frame(BODY, _CHANNEL, copy.body) if copy.body else b""
        self._pieces += (method, header, body)
        content = self._places[-1] + len(method)
        self._places.extend((content, content + len(header) + len(body)))

    def _framed(self, copy: Copy) -> tuple[bytes, bytes]:
        """Method and header frame; neighbours often have the same."""
        key = (copy.envelope, copy.properties, len(copy.body))
        if self._head_of != key:
            arguments = b"\0\0" + copy.envelope + b"\0"
            self._head_of = key
            self._head = (
                method_frame(_CHANNEL, BASIC, _PUBLISH, arguments),
                header_frame(_CHANNEL, len(copy.body), copy.properties),
            )
        return self._head

    def flush(self) -> None:
        """Hands over what was gathered."""
        if not self._pieces:
            return
        pieces, places, traits, shares = self._pieces, self._places, self._traits, self._shares
        self._clear(traits)
        broker = self._broker
        count = len(places) // 2
        block = ScatteredBlock(
            b"".join(pieces),
            broker.store.reserve(count),
            traits,
            broker.now_ms,
            places[:-1:2],
            places[1::2],
            places[2::2],
        )
        broker.publish(block, in_order(shares))

    def _offer(self, copy: Copy) -> None:
        block = WholeBlock(
            copy.envelope,
            marked(copy.queues, copy.properties),
            copy.body,
            self._broker.store.reserve(1),
            copy.traits,
            self._broker.now_ms,
            copy.blind_keys,
        )
        self._broker.offer(block, copy.queues, is_sure=copy.is_sure)
