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

from struct import Struct
from typing import TYPE_CHECKING, ClassVar, Final

from ..errors import ChannelError
from ..publish.read_batcher import ReadBatcher
from ..publish.single import publish_one
from ..publish.target import PublishTarget
from ..wire.frames import BASIC, BODY, END, HEADER, METHOD, PUBLISH
from ..wire.method_ids import BASIC_PUBLISH
from ..wire.properties import MessageAttributes
from .incomplete_publish import is_worth_waiting
from .scan_caches import AttributeCache, PatternCache
from .target_cache import TargetCache

if TYPE_CHECKING:
    from .channel_table import ChannelTable
    from .context import ConnectionContext

_header = Struct(">BHIIQ").unpack_from
"""Frame type, channel, payload size, class and weight, body size of a header frame."""
_body = Struct(">BHI").unpack_from
_CLASS_AND_WEIGHT: Final = BASIC << 16
_PATTERN_AFTER: Final = 24
"""Alike messages in a row before a pattern is compiled: that takes 75 us."""
_STRIDED_MIN: Final = 16
"""Fewer alike messages join the scattered ones around them."""


class PublishScanner:
    """Finds the publishes of one connection and gathers them."""

    __slots__ = ("_attributes", "_connection", "_gathered", "_patterns", "_targets")
    __deletable__: ClassVar[tuple[str, ...]] = ("_connection",)
    """For mypyc, see `end`."""

    def __init__(self, connection: ConnectionContext, channels: ChannelTable) -> None:
        self._connection = connection
        self._targets = TargetCache(channels)
        self._attributes = AttributeCache()
        self._patterns = PatternCache()
        self._gathered = ReadBatcher(connection.broker)

    def flush(self) -> None:
        """Publishes what was gathered; called before anything else happens on the connection."""
        self._gathered.flush()

    def forget(self) -> None:
        """Drops all targets, after a channel closed or the user's rights changed."""
        self._targets.clear()

    def end(self) -> None:
        """Drops the reference to the connection, whose socket is lost: a cycle would wait for the
        garbage collector."""
        self.forget()
        del self._connection

    def scan(self, data: bytes, at: int, size: int, frame_max: int) -> int:
        """Gathers the publishes from `at` on; returns the offset of the first other frame.

        Returns `~offset`, a negative number, for a publish that has to wait: it is incomplete, or
        others have their turn first. All is in one loop: a call costs as much as three checks.
        """
        targets = self._targets.by_frame
        lists = self._attributes.by_list
        gathered = self._gathered
        room = min(frame_max, self._connection.broker.limits.max_message_bytes + 8)
        previous: PublishTarget | None = None
        while at + 7 <= size:
            # A remembered frame has less than 64 KiB, and finding it proves all its octets.
            content = at + 8 + (data[at + 5] << 8 | data[at + 6])
            target = targets.get(data[at:content])
            if target is None and (data[at] != METHOD or data[at + 7 : at + 11] != PUBLISH):
                return at
            if content + 20 > size:
                return ~at if is_worth_waiting(data, at, size, frame_max, targets) else at
            kind, channel, list_bytes, class_and_weight, length = _header(data, content)
            body = content + 8 + list_bytes
            end = body + 8 + length if length else body
            if end > size:
                return ~at if is_worth_waiting(data, at, size, frame_max, targets) else at
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
                if self._connection.pending.must_yield:
                    return ~at
                target = self._targets.resolve(self._connection, data[at:content])
                if target is None:
                    return at
            attributes = lists.get(data[content + 19 : body]) if list_bytes <= 91 else None
            if attributes is None:
                if data[body - 1] != END:
                    return at
                self._connection.current_method = BASIC_PUBLISH
                attributes = self._attributes.read(data, content + 19, body)
            if target.special or attributes.inspected:
                if self._connection.pending.must_yield:
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
                    at = self._gather_row(
                        data, at, content, prefix_end, end, size, target, attributes
                    )
                    continue
            previous = target
            if attributes is not gathered.attributes or gathered.data is not data:
                gathered.begin(data, attributes)
            if target is not gathered.target or target.queues is not gathered.queues:
                gathered.switch(target)
            gathered.starts.append(at)
            gathered.contents.append(content)
            gathered.ends.append(end)
            at = end
        return at

    def _publish_one(
        self, target: PublishTarget, attributes: MessageAttributes, properties: bytes, body: bytes
    ) -> None:
        self.flush()
        try:
            publish_one(target, attributes, properties, body)
        except ChannelError as error:
            self._connection.fail_channel(target.number, error, BASIC_PUBLISH)

    def _gather_row(
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
        pattern = self._patterns.by_prefix.get(prefix)
        if pattern is None:
            last = size - stride
            while end <= last and data[end + stride - 1] == END and data.startswith(prefix, end):
                end += stride
                count += 1
                if count == _PATTERN_AFTER:
                    pattern = self._patterns.compile(prefix, stride - len(prefix))
                    break
        if pattern is not None:
            found = pattern.match(data, end)
            assert found is not None
            count += (found.end() - end) // stride
            end = found.end()
        gathered = self._gathered
        if count >= _STRIDED_MIN:
            gathered.publish_row(target, attributes, data, count, (at, content, prefix_end, end))
            return end
        if attributes is not gathered.attributes or gathered.data is not data:
            gathered.begin(data, attributes)
        if target is not gathered.target or target.queues is not gathered.queues:
            gathered.switch(target)
        gathered.starts.extend(range(at, end, stride))
        gathered.contents.extend(range(content, end, stride))
        gathered.ends.extend(range(at + stride, end + 1, stride))
        return end
