"""Caches of the publish scanner: attributes of property lists, and patterns of alike messages."""

from __future__ import annotations

import re
from typing import Final

from ..wire.properties import MessageAttributes
from ..wire.shapes import Shapes

_LISTS_MAX: Final = 1024
LIST_BYTES_MAX: Final = 64
"""Longer property lists are looked up by their structure, not by their bytes."""
_PATTERNS_MAX: Final = 64


class AttributeCache:
    """Message attributes of property lists; `by_list` has short lists with their end octets."""

    __slots__ = ("_shapes", "by_list")

    def __init__(self) -> None:
        self._shapes = Shapes()
        self.by_list: dict[bytes, MessageAttributes] = {}

    def read(self, data: bytes, start: int, end: int) -> MessageAttributes:
        """Returns the attributes of the list from `start` to before its end octet at `end - 1`.

        Raises `ConnectionFault` 502 for a list that can't be decoded.
        """
        attributes = self._shapes.attributes(data, start, end - 1)
        if end - start > LIST_BYTES_MAX:
            return attributes
        if len(self.by_list) >= _LISTS_MAX:
            self.by_list.clear()
        self.by_list[data[start:end]] = attributes
        return attributes


class PatternCache:
    """Regular expressions that match rows of messages with the same bytes before their bodies."""

    __slots__ = ("by_prefix",)

    def __init__(self) -> None:
        self.by_prefix: dict[bytes, re.Pattern[bytes]] = {}

    def compile(self, prefix: bytes, rest: int) -> re.Pattern[bytes]:
        """Returns the pattern of messages that have `rest` octets behind the prefix."""
        if len(self.by_prefix) >= _PATTERNS_MAX:
            self.by_prefix.clear()
        # The last octet of a message is its end octet; without a body it is in the prefix.
        body = b".{%d}\xce" % (rest - 1) if rest else b""
        pattern = re.compile(b"(?:" + re.escape(prefix) + body + b")*+", re.DOTALL)
        self.by_prefix[prefix] = pattern
        return pattern
