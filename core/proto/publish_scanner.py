"""The fast path of publishing: scans a socket read once and gathers its publishes into batches.

A publish is recognised by its class and method octets. Its whole method frame is the key of a
dictionary whose value, a `PublishTarget`, holds everything the frame decides: channel, exchange,
rights, route. Its property list decides its attributes, again by dictionary. On a hit nothing is
decoded, and a message costs two look-ups, five comparisons and three offsets in arrays.

Publishers that send alike messages cost less still. When the next message begins with the same
bytes up to its body, all that follow are counted by one regular expression made from that
prefix (0.1 us a message) and become a strided batch without offsets.

Anything unusual (content cut by the end of the read, several body frames, a doubtful octet) is
left to the slow path, which sees single frames and raises every error; special messages
(mandatory without a route, CC, a queue that may refuse) go through `publish_one`.
"""

from __future__ import annotations

import re
from array import array
from itertools import chain
from struct import Struct
from typing import TYPE_CHECKING

from ..errors import ChannelError
from ..message.batch import Batch, StridedBatch, framed_batch
from ..publish.single import publish_one
from ..publish.target import PublishTarget, read_target
from ..queue.queue import Queue
from ..wire.frames import (
    BASIC,
    BODY,
    END,
    FRAME_OVERHEAD_BYTES,
    HEAD_BYTES,
    HEADER,
    METHOD,
    PUBLISH,
)
from ..wire.method_ids import BASIC_PUBLISH
from ..wire.properties import MessageAttributes
from ..wire.shapes import Shapes

if TYPE_CHECKING:
    from ..broker import Share
    from .channel import Channel
    from .connection import Connection

_header = Struct(">BHIIQ").unpack_from
"""Frame type, channel, payload size, class and weight, body size of a header frame."""
_body = Struct(">BHI").unpack_from

TARGETS_MAX = 1024
"""Remembered method frames of a connection; later ones are resolved each time."""
_LISTS_MAX = 1024
_LIST_BYTES_MAX = 64
"""Longer property lists are looked up by their structure, not by their bytes."""
_PATTERNS_MAX = 64
_PATTERN_AFTER = 24
"""Alike messages in a row before a pattern is compiled: that takes 75 us."""
_STRIDED_MIN = 16
"""Fewer alike messages join the scattered ones around them."""
_WHOLE_MAX_BYTES = 65_536
"""A larger message that is not complete in the read is taken frame by frame."""
_SHARED_TARGETS_MAX = 64
_CLASS_AND_WEIGHT = BASIC << 16
_COPY_FRACTION = 4
"""A batch that uses less than a quarter of its read is copied out, to let the rest go."""


class PublishScanner:
    """Gathers the publishes of one connection."""

    __slots__ = (
        "_attributes",
        "_confirm_counts",
        "_connection",
        "_contents",
        "_data",
        "_ends",
        "_lists",
        "_patterns",
        "_queues",
        "_shapes",
        "_share_start",
        "_shared_targets",
        "_shares",
        "_starts",
        "_targets",
    )  # fmt: skip

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._targets: dict[bytes, PublishTarget] = {}
        self._shared_targets: dict[tuple[bytes, bytes, int], PublishTarget] = {}
        self._lists: dict[bytes, MessageAttributes] = {}
        self._shapes = Shapes()
        self._patterns: dict[bytes, re.Pattern[bytes]] = {}
        self._data = b""
        self._starts: array[int] = array("I")
        self._contents: array[int] = array("I")
        self._ends: array[int] = array("I")
        self._attributes: MessageAttributes | None = None
        self._queues: tuple[Queue, ...] = ()
        self._share_start = 0
        self._shares: dict[tuple[Queue, ...], array[int]] | None = None
        self._confirm_counts: dict[PublishTarget, int] | None = None

    def forget(self) -> None:
        """Drops all targets, after a channel closed or the user's rights changed."""
        for target in self._targets.values():
            target.route.release()
        self._targets.clear()
        self._forget_shared()

    def end(self) -> None:
        """Drops the reference to the connection, whose socket is lost: a cycle would wait for the
        garbage collector."""
        self.forget()
        del self._connection

    def scan(self, data: bytes, at: int, size: int, frame_max: int) -> int:
        """Gathers the publishes from `at` on; returns the offset of the first other frame.

        Returns `~offset`, a negative number, for an incomplete publish that the next read may
        complete.
        """
        targets = self._targets
        lists = self._lists
        room = min(frame_max, self._connection.broker.limits.max_message_bytes + 8)
        previous: PublishTarget | None = None
        while at + 7 <= size:
            # A remembered frame has less than 64 KiB, and finding it proves all its octets.
            content = at + 8 + (data[at + 5] << 8 | data[at + 6])
            target = targets.get(data[at:content])
            if target is None and (data[at] != METHOD or data[at + 7 : at + 11] != PUBLISH):
                return at
            if content + 20 > size:
                return self._unfinished(data, at, size, frame_max)
            kind, channel, list_bytes, class_and_weight, length = _header(data, content)
            body = content + 8 + list_bytes
            end = body + 8 + length if length else body
            if end > size:
                return self._unfinished(data, at, size, frame_max)
            if (
                kind != HEADER
                or channel != data[at + 1] << 8 | data[at + 2]
                or class_and_weight != _CLASS_AND_WEIGHT
                or list_bytes < 14
                or data[end - 1] != END
                or end - body > room
                or list_bytes > frame_max
                or (length and _body(data, body) != (BODY, channel, length))
            ):
                return at
            if target is None or target.route.dead:
                if data[content - 1] != END or data[at + 3 : at + 5] != b"\0\0":
                    return at
                if self._connection.must_rest:
                    return ~at
                target = self._resolve(data, at, content)
                if target is None:
                    return at
            attributes = lists.get(data[content + 19 : body]) if list_bytes <= 91 else None
            if attributes is None:
                if data[body - 1] != END:
                    return at
                attributes = self._read_list(data, content + 19, body)
            if target.special or attributes.inspected:
                if self._connection.must_rest:
                    return ~at
                self._publish_one(
                    target,
                    attributes,
                    data[content + 19 : body - 1],
                    data[end - 1 - length : end - 1] if length else b"",
                )
                at = end
                continue
            if target is previous or previous is None:
                prefix_end = body + 7 if length else body
                if data.startswith(data[at:prefix_end], end):
                    at = self._gather_strided(
                        data, at, content, prefix_end, end, size, target, attributes
                    )
                    continue
            previous = target
            if attributes is not self._attributes or self._data is not data:
                self._begin(data, attributes)
            if target.queues is not self._queues:
                self._switch(target.queues)
            if target.confirming:
                self._count(target, 1)
            self._starts.append(at)
            self._contents.append(content)
            self._ends.append(end)
            at = end
        return at

    # -- the parts of a message

    def _unfinished(self, data: bytes, at: int, size: int, frame_max: int) -> int:
        """Decides about an incomplete publish: wait for the next read (`~at`), or leave it to the
        slow path (`at`).

        It is worth waiting for if the frame heads that are there fit one small message.
        """
        channel = data[at + 1 : at + 3]
        end = at
        for kind in (METHOD, HEADER, BODY):
            start = end
            if start + HEAD_BYTES > size:
                return ~at
            payload_bytes = int.from_bytes(data[start + 3 : start + 7], "big")
            end = start + FRAME_OVERHEAD_BYTES + payload_bytes
            if (
                data[start] != kind
                or data[start + 1 : start + 3] != channel
                or payload_bytes > frame_max
                or end - at > _WHOLE_MAX_BYTES
            ):
                return at
            if end > size:
                return ~at
            # An error in a frame is to be reported now, not when the content is complete.
            if data[end - 1] != END:
                return at
            if kind == METHOD and data[start:end] not in self._targets:
                return at
            if kind == HEADER and not self._plausible(data, start, payload_bytes):
                return at
        return at

    def _plausible(self, data: bytes, start: int, payload_bytes: int) -> bool:
        """Whether a header frame announces a small message of class basic."""
        if payload_bytes < 14:
            return False
        _, _, _, class_and_weight, length = _header(data, start)
        return bool(class_and_weight == _CLASS_AND_WEIGHT and length <= _WHOLE_MAX_BYTES)

    def _resolve(self, data: bytes, at: int, content: int) -> PublishTarget | None:
        """Resolves a method frame that is not cached; None leaves it to the slow path."""
        number = data[at + 1] << 8 | data[at + 2]
        channel = self._connection.channels.get(number)
        if channel is None or not channel.open or channel.content is not None:
            return None
        frame = data[at:content]
        keep = len(self._targets) < TARGETS_MAX or frame in self._targets
        self._connection.current_method = BASIC_PUBLISH
        try:
            if not keep:
                return self._resolve_shared(channel, frame)
            target = read_target(channel, frame[7:-1], watched=True)
        except ChannelError as error:
            self._connection.fail_channel(number, error, BASIC_PUBLISH)
            return None
        self._targets[frame] = target
        return target

    def _resolve_shared(self, channel: Channel, frame: bytes) -> PublishTarget:
        """Resolves a frame that is not worth caching: each message has another routing key.

        The common part of such frames, channel, exchange and flags, is cached as one target that
        gets the key and its queues each time.
        """
        key_at = 14 + frame[13] if len(frame) > 13 else len(frame)
        if key_at + 2 >= len(frame) or frame[key_at] != len(frame) - key_at - 3:
            return read_target(channel, frame[7:-1], watched=False)
        shared = (frame[:3], frame[13:key_at], frame[-2])
        target = self._shared_targets.get(shared)
        if target is None or target.route.dead:
            if len(self._shared_targets) >= _SHARED_TARGETS_MAX:
                self._forget_shared()
            target = read_target(channel, frame[7:-1], watched=True)
            self._shared_targets[shared] = target
        else:
            target.set_routing_key(frame[13:-2], frame[key_at + 1 : -2])
        return target

    def _forget_shared(self) -> None:
        for target in self._shared_targets.values():
            target.route.release()
        self._shared_targets.clear()

    def _read_list(self, data: bytes, start: int, body: int) -> MessageAttributes:
        self._connection.current_method = BASIC_PUBLISH
        attributes = self._shapes.attributes(data, start, body - 1)
        if body - start > _LIST_BYTES_MAX:
            return attributes
        if len(self._lists) >= _LISTS_MAX:
            self._lists.clear()
        self._lists[data[start:body]] = attributes
        return attributes

    def _publish_one(
        self, target: PublishTarget, attributes: MessageAttributes, properties: bytes, body: bytes
    ) -> None:
        self.flush()
        try:
            publish_one(target, attributes, properties, body)
        except ChannelError as error:
            self._connection.fail_channel(target.number, error, BASIC_PUBLISH)

    # -- alike messages

    def _gather_strided(
        self,
        data: bytes,
        at: int,
        content: int,
        prefix_end: int,
        end: int,
        size: int,
        target: PublishTarget,
        attributes: MessageAttributes,
    ) -> int:
        """Gathers a message and the following ones that differ only in their body octets."""
        prefix = data[at:prefix_end]
        stride = end - at
        count = 1
        pattern = self._patterns.get(prefix)
        if pattern is None:
            last = size - stride
            while end <= last and data[end + stride - 1] == END and data.startswith(prefix, end):
                end += stride
                count += 1
                if count == _PATTERN_AFTER:
                    pattern = self._compile(prefix, stride - len(prefix))
                    break
        if pattern is not None:
            found = pattern.match(data, end)
            assert found is not None
            count += (found.end() - end) // stride
            end = found.end()
        if count < _STRIDED_MIN:
            if attributes is not self._attributes or self._data is not data:
                self._begin(data, attributes)
            if target.queues is not self._queues:
                self._switch(target.queues)
            if target.confirming:
                self._count(target, count)
            self._starts.extend(range(at, end, stride))
            self._contents.extend(range(content, end, stride))
            self._ends.extend(range(at + stride, end + 1, stride))
            return end
        self.flush()
        if (end - at) * _COPY_FRACTION < len(data):
            data = data[at:end]
            content -= at
            prefix_end -= at
            at, after = 0, end
        else:
            after = end
        broker = self._connection.broker
        batch = StridedBatch(
            data,
            broker.store.reserve(count),
            count,
            attributes,
            broker.now_ms,
            (at, stride, content - at, prefix_end - at),
        )
        self._publish(batch, [(target.queues, None)] if target.queues else [], {target: count})
        return after

    def _compile(self, prefix: bytes, rest: int) -> re.Pattern[bytes]:
        if len(self._patterns) >= _PATTERNS_MAX:
            self._patterns.clear()
        # The last octet of a message is its end octet; without a body it is in the prefix.
        body = b".{%d}\xce" % (rest - 1) if rest else b""
        pattern = re.compile(b"(?:" + re.escape(prefix) + body + b")*+", re.DOTALL)
        self._patterns[prefix] = pattern
        return pattern

    # -- gathering

    def _begin(self, data: bytes, attributes: MessageAttributes) -> None:
        self.flush()
        self._data = data
        self._attributes = attributes

    def _switch(self, queues: tuple[Queue, ...]) -> None:
        """Closes the current share: the next message goes to other queues."""
        if queues != self._queues:
            self._close_share()
            self._queues = queues

    def _close_share(self) -> None:
        count = len(self._starts)
        if self._share_start == count:
            return
        if self._shares is None:
            self._shares = {}
        selection = self._shares.get(self._queues)
        if selection is None:
            selection = self._shares[self._queues] = array("I")
        selection.extend(range(self._share_start, count))
        self._share_start = count

    def _count(self, target: PublishTarget, count: int) -> None:
        """Counts publishes of channels in confirm mode."""
        if self._confirm_counts is None:
            self._confirm_counts = {}
        self._confirm_counts[target] = self._confirm_counts.get(target, 0) + count

    def flush(self) -> None:
        """Publishes what was gathered; called before anything else happens on the connection."""
        starts = self._starts
        if not starts:
            return
        self._close_share()
        shares, self._shares = self._shares, None
        counted, self._confirm_counts = self._confirm_counts, None
        contents, ends, data, attributes = self._contents, self._ends, self._data, self._attributes
        assert attributes is not None
        assert shares is not None
        self._starts, self._contents, self._ends = array("I"), array("I"), array("I")
        self._share_start = 0
        self._queues = ()
        self._attributes = None
        self._data = b""
        if (ends[-1] - starts[0]) * _COPY_FRACTION < len(data):
            base = starts[0]
            data = data[base : ends[-1]]
            starts, contents, ends = (
                array("I", [offset - base for offset in offsets])
                for offsets in (starts, contents, ends)
            )
        broker = self._connection.broker
        batch = framed_batch(
            data,
            broker.store.reserve(len(starts)),
            attributes,
            broker.now_ms,
            starts,
            contents,
            ends,
        )
        self._publish(batch, in_order(shares), counted or {})

    def _publish(
        self,
        batch: Batch,
        shares: list[Share],
        counted: dict[PublishTarget, int],
    ) -> None:
        commit = self._connection.broker.publish(batch, shares)
        for target, count in counted.items():
            target.publisher.published(count, commit)


def in_order(shares: dict[tuple[Queue, ...], array[int]]) -> list[Share]:
    """Returns the shares of a batch, each queue in only one, so that its messages stay in order."""
    if len(shares) == 1:
        return [(queues, None) for queues in shares if queues]
    named = [queue for queues in shares for queue in queues]
    if len(named) == len(set(named)):
        return [(queues, taken) for queues, taken in shares.items() if queues]
    by_queue: dict[Queue, list[array[int]]] = {}
    for queues, taken in shares.items():
        for queue in queues:
            by_queue.setdefault(queue, []).append(taken)
    return [
        ((queue,), array("I", sorted(chain.from_iterable(parts))))
        for queue, parts in by_queue.items()
    ]
