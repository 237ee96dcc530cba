"""Batches the messages that the broker makes itself, such as dead letters.

A batch for each message would cost queues, log and consumers some 20 us a message; together they
cost 2.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, NamedTuple

from ..message.batch import SingleMessage, framed_batch
from ..proto.publish_scanner import in_order
from ..publish.offset_header import marked
from ..wire.frames import BODY, frame, header_frame, method_frame
from ..wire.method_ids import BASIC_PUBLISH
from ..wire.properties import PLAIN, MessageAttributes

if TYPE_CHECKING:
    from ..broker import Broker
    from ..queue.queue import Queue

_BATCH_BYTES = 262_144
"""As large as a socket read: a batch is paged out and in as a whole."""
_TOGETHER_MAX_BYTES = 65_536
"""Larger messages are cut into frames for each consumer, so they are not framed here."""
_CHANNEL = 1


class Copy(NamedTuple):
    """A message to publish, and its queues."""

    envelope: bytes
    properties: bytes
    body: bytes
    attributes: MessageAttributes
    bcc_keys: tuple[str, ...]
    queues: tuple[Queue, ...]
    is_sure: bool = False
    """Whether its queues accept it although they would refuse a publish."""

    @property
    def is_plain(self) -> bool:
        """Whether it needs no check by itself and can be batched with others."""
        if self.bcc_keys or len(self.body) + len(self.properties) > _TOGETHER_MAX_BYTES:
            return False
        return not any(
            queue.rules is not None and (queue.rules.checks_publishes or queue.adds_offsets)
            for queue in self.queues
        )


class _Gathered(NamedTuple):
    """Copies that become a batch: their frames, offsets and queues."""

    data: bytes
    offsets: array[int]
    attributes: MessageAttributes
    shares: dict[tuple[Queue, ...], array[int]]


class CopyBatcher:
    """Gathers copies into batches; each queue gets its own in the order of `add`.

    With `is_deferred` nothing is published before `publish_all`.
    """

    __slots__ = (
        "_attributes",
        "_broker",
        "_deferred",
        "_frames",
        "_head",
        "_head_of",
        "_offsets",
        "_shares",
    )  # fmt: skip

    def __init__(self, broker: Broker, *, is_deferred: bool = False) -> None:
        self._broker = broker
        self._deferred: list[_Gathered | Copy] | None = [] if is_deferred else None
        self._head_of: tuple[bytes, bytes, int] | None = None
        self._head: tuple[bytes, bytes] = (b"", b"")
        self._clear(PLAIN)

    def _clear(self, attributes: MessageAttributes) -> None:
        self._attributes = attributes
        self._frames: list[bytes] = []
        self._offsets = array("I", [0])
        self._shares: dict[tuple[Queue, ...], array[int]] = {}

    def add(self, copy: Copy) -> None:
        if not copy.is_plain:
            self.flush()
            self._pass_on(copy)
            return
        if copy.attributes is not self._attributes or self._offsets[-1] >= _BATCH_BYTES:
            self.flush()
            self._clear(copy.attributes)
        selection = self._shares.get(copy.queues)
        if selection is None:
            selection = self._shares[copy.queues] = array("I")
        selection.append(len(self._offsets) // 2)
        method, header = self._framed(copy)
        body = frame(BODY, _CHANNEL, copy.body) if copy.body else b""
        self._frames += (method, header, body)
        content = self._offsets[-1] + len(method)
        self._offsets.extend((content, content + len(header) + len(body)))

    def _framed(self, copy: Copy) -> tuple[bytes, bytes]:
        """Returns method and header frame; cached, because consecutive copies often share them."""
        key = (copy.envelope, copy.properties, len(copy.body))
        if self._head_of != key:
            arguments = b"\0\0" + copy.envelope + b"\0"
            self._head_of = key
            self._head = (
                method_frame(_CHANNEL, BASIC_PUBLISH, arguments),
                header_frame(_CHANNEL, len(copy.body), copy.properties),
            )
        return self._head

    def flush(self) -> None:
        """Makes a batch of what was gathered, and publishes or defers it."""
        if self._frames:
            gathered = _Gathered(
                b"".join(self._frames), self._offsets, self._attributes, self._shares
            )
            self._clear(self._attributes)
            self._pass_on(gathered)

    def _pass_on(self, made: _Gathered | Copy) -> None:
        if self._deferred is None:
            self._publish_made(made)
        else:
            self._deferred.append(made)

    def publish_all(self) -> int:
        """Publishes all that is deferred, except to queues deleted since.

        Returns the commit number to wait for, 0 for none.
        """
        self.flush()
        deferred, self._deferred = self._deferred or [], []
        return max((self._publish_made(_without_deleted(made)) for made in deferred), default=0)

    def _publish_made(self, made: _Gathered | Copy) -> int:
        return self._publish(made) if isinstance(made, _Gathered) else self._offer(made)

    def _publish(self, gathered: _Gathered) -> int:
        broker, offsets = self._broker, gathered.offsets
        batch = framed_batch(
            gathered.data,
            broker.store.reserve(len(offsets) // 2),
            gathered.attributes,
            broker.now_ms,
            offsets[:-1:2],
            offsets[1::2],
            offsets[2::2],
        )
        return broker.publish(batch, in_order(gathered.shares))

    def _offer(self, copy: Copy) -> int:
        batch = SingleMessage(
            copy.envelope,
            marked(copy.queues, copy.properties),
            copy.body,
            self._broker.store.reserve(1),
            copy.attributes,
            self._broker.now_ms,
            copy.bcc_keys,
        )
        return self._broker.offer(batch, copy.queues, is_sure=copy.is_sure)[1]


def _existing(queues: tuple[Queue, ...]) -> tuple[Queue, ...]:
    return tuple(queue for queue in queues if not queue.deleted)


def _without_deleted(made: _Gathered | Copy) -> _Gathered | Copy:
    if isinstance(made, Copy):
        return made._replace(queues=_existing(made.queues))
    shares: dict[tuple[Queue, ...], array[int]] = {}
    for queues, selection in made.shares.items():
        shares.setdefault(_existing(queues), array("I")).extend(selection)
    return made._replace(
        shares={queues: array("I", sorted(taken)) for queues, taken in shares.items()}
    )
