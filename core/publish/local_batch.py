"""In-process publishing of many messages that differ only in their bodies.

They become the same batches as a socket read, at the same cost. Where each message needs a check
(headers that route, queues that may refuse, expirations) they are published one by one.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate
from struct import Struct
from typing import TYPE_CHECKING

from ..message.batch import envelope, framed_batch
from ..message.model import Properties
from ..route.route import Route
from ..wire import properties as wire
from ..wire.frames import BASIC, BODY, END_OCTET, HEADER, METHOD, PUBLISH
from .local import LocalPublish
from .single import publish_one
from .target import MANDATORY, PublishTarget

if TYPE_CHECKING:
    from ..auth import User
    from ..broker import Broker
    from ..queue.queue import Queue
    from ..vhost import VirtualHost

BATCH_BYTES = 256 * 1024  # of bodies: as much as a read of a socket gives
MAX_FRAMED_BYTES = 128 * 1024
"""A longer body is a batch of its own: no frame is as long in a read either."""
_FRAME = Struct(">BHI")
_CONTENT = Struct(">HHQ")
_PUBLISH = PUBLISH + b"\0\0"  # and a reserved short


class LocalBatch(LocalPublish):
    """Messages published together and their outcome: counts, and one commit for all."""

    __slots__ = ("rejected_count", "unrouted_count")

    def __init__(self, broker: Broker, vhost: VirtualHost, user: User) -> None:
        super().__init__(broker, vhost, user)
        self.rejected_count = 0
        self.unrouted_count = 0

    def published(self, count: int, commit: int) -> None:
        self.commit = max(self.commit, commit)

    def refused(self) -> None:
        self.rejected_count += 1

    def send_return(self, code: int, text: str, returned: object) -> None:
        self.unrouted_count += 1

    def run_all(
        self,
        exchange: str,
        routing_key: str,
        properties: Properties,
        bodies: Sequence[bytes],
        queue: Queue | None = None,
    ) -> LocalBatch:
        """Publishes in order, to an exchange or straight into `queue`. Raises as `publish`."""
        source = self.vhost.publishable(exchange) if queue is None else None
        if queue is None:
            route = self.vhost.route(source, (routing_key,), None, watched=False)
        else:
            route = Route((queue,), uses_key=False, uses_headers=False)
        raw = wire.encode(properties)
        attributes = wire.read_attributes(raw, 0, len(raw))
        head = envelope(exchange, routing_key)
        target = PublishTarget(self, 0, head, source, routing_key, MANDATORY, route)
        if not target.queues and not target.each_message:
            self.unrouted_count += len(bodies)
        elif target.special or attributes.inspected:
            for body in bodies:
                publish_one(target, attributes, raw, body)
        else:
            self._publish(target, raw, bodies)
        self.broker.on_work()
        return self

    def _publish(self, target: PublishTarget, raw: bytes, bodies: Sequence[bytes]) -> None:
        attributes = wire.read_attributes(raw, 0, len(raw))
        for part in portions(bodies):
            if len(part) == 1 and len(part[0]) > MAX_FRAMED_BYTES:
                publish_one(target, attributes, raw, part[0])
                continue
            data, starts, contents, ends = framed(target.envelope, raw, part)
            sequence = self.broker.store.reserve(len(part))
            now_ms = self.broker.now_ms
            batch = framed_batch(data, sequence, attributes, now_ms, starts, contents, ends)
            commit = self.broker.publish(batch, [(target.queues, None)])
            self.published(len(part), commit)


def portions(bodies: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Splits the bodies, in order, into those of one batch each; long ones are alone."""
    start = size = 0
    for at, body in enumerate(bodies):
        if start < at and (size + len(body) > BATCH_BYTES or len(body) > MAX_FRAMED_BYTES):
            yield bodies[start:at]
            start, size = at, 0
        size += len(body)
        if len(body) > MAX_FRAMED_BYTES:
            yield bodies[at : at + 1]
            start, size = at + 1, 0
    if start < len(bodies):
        yield bodies[start:]


def framed(
    target: bytes, raw: bytes, bodies: Sequence[bytes]
) -> tuple[bytes, array[int], array[int], array[int]]:
    """Frames the bodies as publishes on channel 1; returns the bytes, and for each message the
    offsets of its method frame, its header frame and its end."""
    method = _PUBLISH + target + b"\0"
    method = _FRAME.pack(METHOD, 1, len(method)) + method + END_OCTET
    content = len(method)
    front = method + _FRAME.pack(HEADER, 1, _CONTENT.size + len(raw))
    pieces = []
    for body in bodies:
        size = len(body)
        pieces.append(front + _CONTENT.pack(BASIC, 0, size) + raw + END_OCTET)
        if size:
            pieces.append(_FRAME.pack(BODY, 1, size))
            pieces.append(body)
            pieces.append(END_OCTET)
    fixed = len(front) + _CONTENT.size + len(raw) + len(END_OCTET)
    lengths = [fixed + len(body) + 8 if body else fixed for body in bodies]
    ends = array("I", accumulate(lengths))
    starts = array("I", [0, *ends[:-1]])
    contents = array("I", [start + content for start in starts])
    return b"".join(pieces), starts, contents, ends
