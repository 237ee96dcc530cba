"""Frames messages that did not come as frames, in the form in which publishers send them.

So queues, log and consumers treat them like those of a socket read: a batch for each message would
cost some 20 us a message, a common one costs 2.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from struct import Struct
from typing import Final

from ..wire.frames import BASIC, BODY, END_OCTET, HEADER, method_frame
from ..wire.method_ids import BASIC_PUBLISH
from ..wire.properties import MessageAttributes
from .framed_batch import FramedBatch, ScatteredBatch, framed_batch

_CHANNEL: Final = 1
"""The channel of most consumers; for others their framers rewrite the frame heads."""
_header_head = Struct(">BHIHHQ").pack
"""A header frame up to its property list: frame head, class and weight, body size."""
_body_head = Struct(">BHI").pack
_end_and_body_head = Struct(">BBHI").pack
HEADER_HEAD_BYTES: Final = 19
_BODY_FRAME_BYTES: Final = 8
"""A body frame without its body."""


def publish_frame(envelope: bytes) -> bytes:
    """Returns the method frame of messages with this envelope."""
    return method_frame(_CHANNEL, BASIC_PUBLISH, b"\0\0" + envelope + b"\0")


class FramedMessages:
    """Messages in frames, one after the other: publish method, content header, and a body frame
    unless the body is empty. `size_bytes` are framed so far."""

    __slots__ = (
        "_contents", "_ends", "_envelope", "_heads", "_method", "_pieces", "_properties",
        "size_bytes",
    )  # fmt: skip

    def __init__(self) -> None:
        self.size_bytes = 0
        self._pieces: list[bytes] = []
        self._contents, self._ends = array("I"), array("I")
        self._envelope: bytes | None = None
        self._method = self._properties = b""
        self._heads: dict[int, bytes] = {}
        """The frames before the body octets, by the size of the body."""

    @property
    def count(self) -> int:
        return len(self._ends)

    def add(self, method: bytes, properties: bytes, body: bytes) -> int:
        """Adds a message, and returns its index; `method` is from `publish_frame`."""
        index, size, list_bytes = len(self._ends), len(body), len(properties)
        content = self.size_bytes + len(method)
        header = _header_head(HEADER, _CHANNEL, 12 + list_bytes, BASIC, 0, size)
        end = content + HEADER_HEAD_BYTES + list_bytes + 1
        if size:
            end += size + _BODY_FRAME_BYTES
            head = _end_and_body_head(END_OCTET[0], BODY, _CHANNEL, size)
            self._pieces += (method, header, properties, head, body, END_OCTET)
        else:
            self._pieces += (method, header, properties, END_OCTET)
        self._contents.append(content)
        self._ends.append(end)
        self.size_bytes = end
        return index

    def add_alike(self, envelope: bytes, properties: bytes, bodies: Sequence[bytes]) -> None:
        """Adds messages that differ only in their bodies, and perhaps from those before them: 0.2
        us a message where bodies are of few sizes."""
        if envelope != self._envelope or properties != self._properties:
            self._begin(envelope, properties)
        heads, pieces = self._heads, self._pieces
        contents, ends = self._contents, self._ends
        at, content = self.size_bytes, len(self._method)
        for body in bodies:
            size = len(body)
            head = heads.get(size)
            if head is None:
                head = heads[size] = self._head(size)
            contents.append(at + content)
            at += len(head)
            if size:
                pieces += (head, body, END_OCTET)
                at += size + 1
            else:
                pieces.append(head)
            ends.append(at)
        self.size_bytes = at

    def _begin(self, envelope: bytes, properties: bytes) -> None:
        """Begins messages with another envelope or other properties."""
        if envelope != self._envelope:
            self._envelope = envelope
            self._method = publish_frame(envelope)
        self._properties = properties
        self._heads = {}

    def _head(self, size: int) -> bytes:
        """Returns all that precedes a body of this size."""
        properties = self._properties
        header = _header_head(HEADER, _CHANNEL, 12 + len(properties), BASIC, 0, size)
        head = self._method + header + properties + END_OCTET
        return head + _body_head(BODY, _CHANNEL, size) if size else head

    def join(self) -> None:
        """Makes one piece of all frames, when nothing more comes: that of many batches at once, or
        freeing their frames, is a step of a third of a second."""
        self._pieces = [b"".join(self._pieces)]

    def data(self) -> bytes:
        return b"".join(self._pieces)

    def batch(self, sequence: int, attributes: MessageAttributes, arrived_ms: int) -> FramedBatch:
        """Returns the messages as a batch that begins with this sequence number."""
        return framed_batch(
            self.data(), sequence, attributes, arrived_ms, self._starts(), self._contents,
            self._ends,
        )  # fmt: skip

    def scattered(
        self, sequence: int, attributes: MessageAttributes, arrived_ms: int
    ) -> ScatteredBatch:
        """As `batch`, for a batch that is taken apart: offsets of each message, also of one."""
        return ScatteredBatch(
            self.data(), sequence, attributes, arrived_ms, self._starts(), self._contents,
            self._ends,
        )  # fmt: skip

    def _starts(self) -> array[int]:
        starts = array("I", [0])
        starts.extend(self._ends[:-1])
        return starts
