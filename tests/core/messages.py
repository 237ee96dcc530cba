"""Messages as clients send them, and batches of them.

The frames are pamqp's, so that what Warren makes of them can be compared with another codec.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

from pamqp import body, commands, frame, header

from warrenmq.core.message.batch import Batch, SingleMessage
from warrenmq.core.message.envelope import envelope
from warrenmq.core.message.framed_batch import ScatteredBatch, StridedBatch
from warrenmq.core.wire.properties import PLAIN, MessageAttributes

NO_PROPERTIES = b"\x00\x00"


@dataclass(frozen=True)
class Sent:
    """One published message."""

    body: bytes = b""
    exchange: str = ""
    routing_key: str = "q"
    properties: commands.Basic.Properties = field(default_factory=commands.Basic.Properties)

    @property
    def raw_properties(self) -> bytes:
        """Returns flag word and property list."""
        return self.properties.marshal()

    def publish_frame(self, channel: int) -> bytes:
        method = commands.Basic.Publish(exchange=self.exchange, routing_key=self.routing_key)
        return frame.marshal(method, channel)

    def header_frame(self, channel: int) -> bytes:
        content = header.ContentHeader(body_size=len(self.body), properties=self.properties)
        return frame.marshal(content, channel)

    def body_frames(self, channel: int, frame_max: int) -> bytes:
        room = frame_max - 8
        cuts = [self.body[at : at + room] for at in range(0, len(self.body), room)]
        return b"".join(frame.marshal(body.ContentBody(cut), channel) for cut in cuts)

    def content(self, channel: int, frame_max: int = 2**32) -> bytes:
        return self.header_frame(channel) + self.body_frames(channel, frame_max)

    def published(self, channel: int) -> bytes:
        return self.publish_frame(channel) + self.content(channel)

    def delivered(
        self, channel: int, consumer_tag: str, tag: int, redelivered: bool, frame_max: int
    ) -> bytes:
        """Returns the frames that a consumer has to get, encoded by pamqp."""
        method = commands.Basic.Deliver(
            consumer_tag, tag, redelivered, self.exchange, self.routing_key
        )
        return frame.marshal(method, channel) + self.content(channel, frame_max)


def strided(
    messages: Sequence[Sent],
    *,
    channel: int = 1,
    sequence: int = 1,
    attributes: MessageAttributes = PLAIN,
    before: bytes = b"",
    arrived_ms: int = 0,
) -> StridedBatch:
    """Returns messages that differ only in the bytes of their bodies; `before` precedes them."""
    first = messages[0]
    content_at = len(first.publish_frame(channel))
    body_at = content_at + len(first.header_frame(channel)) + (7 if first.body else 0)
    stride = len(first.published(channel))
    data = before + b"".join(message.published(channel) for message in messages)
    layout = (len(before), stride, content_at, body_at)
    return StridedBatch(data, sequence, len(messages), attributes, arrived_ms, layout)


def scattered(
    messages: Sequence[Sent],
    *,
    channel: int = 1,
    sequence: int = 1,
    attributes: MessageAttributes = PLAIN,
    before: bytes = b"",
    arrived_ms: int = 0,
) -> ScatteredBatch:
    data = before
    starts, contents, ends = array("I"), array("I"), array("I")
    for message in messages:
        starts.append(len(data))
        contents.append(len(data) + len(message.publish_frame(channel)))
        data += message.published(channel)
        ends.append(len(data))
    return ScatteredBatch(data, sequence, attributes, arrived_ms, starts, contents, ends)


def whole(
    message: Sent, *, sequence: int = 1, attributes: MessageAttributes = PLAIN, arrived_ms: int = 0
) -> SingleMessage:
    return SingleMessage(
        envelope(message.exchange, message.routing_key),
        message.raw_properties,
        message.body,
        sequence,
        attributes,
        arrived_ms,
    )


def batch(
    count: int, sequence: int = 1, attributes: MessageAttributes = PLAIN, body_bytes: int = 4
) -> Batch:
    """Returns `count` messages whose bodies are their sequence numbers."""
    numbers = range(sequence, sequence + count)
    messages = [Sent(number.to_bytes(body_bytes, "big")) for number in numbers]
    return strided(messages, sequence=sequence, attributes=attributes)
