"""A reader of kept messages: a stream, or an exchange that keeps what is published to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ...core.errors import ProtocolError
from ..engine.port import BulkConsumer, ReadMessages, Stream, StreamState
from .cursors import ResumeCursor
from .reasons import Reason
from .shared_encoding import SharedEncoding

if TYPE_CHECKING:
    from ..requests import Resource
    from .reader import LiveReader

FIRST: Final = "first"
LAST: Final = "last"
NEXT: Final = "next"
WORDS: Final = frozenset({FIRST, LAST, NEXT})


class StoredReading:
    """Reads stored messages from a cursor on. Nothing is lost while the reader does not keep up, as
    long as retention keeps it."""

    def __init__(
        self, stream: Stream, source: Resource, keys: Sequence[str], encoding: SharedEncoding
    ) -> None:
        self._stream = stream
        self._source = source
        self._keys = tuple(sorted(keys))
        self._encoding = encoding
        self._reader: LiveReader | None = None
        self._tag = ""
        self._begin = 0
        self._follower: BulkConsumer | None = None

    def add(self, reader: LiveReader) -> None:
        state = self._stream.state()
        if state is None:
            reader.end(Reason.deleted(self._source))
            return
        self._reader = reader
        self._tag = f"{state.id:x}"
        start = self._begin = self._start(reader, state)
        try:
            self._follower = self._stream.follow(
                start,
                self._keys,
                on_messages=self._take,
                on_gap=self._gap,
                on_end=lambda error: reader.end(Reason.cancelled(self._source, error)),
            )
        except ProtocolError as error:
            reader.end(Reason.of(error))
        else:
            self._follower.resume()

    def _start(self, reader: LiveReader, state: StreamState) -> int:
        """Returns the offset to begin at; says what can't be read of what was asked for."""
        if reader.cursor in WORDS or not reader.cursor:
            last = max(state.first, state.next_offset - 1)
            words = {FIRST: state.first, LAST: last}
            return words.get(reader.cursor, state.next_offset)
        asked = ResumeCursor.read(reader.cursor)
        if asked.tag in ("", self._tag) and asked.number <= state.next_offset:
            return asked.number  # What was dropped meanwhile is reported as a gap.
        is_other = asked.tag not in ("", self._tag)
        first = state.first if is_other else state.next_offset
        reader.gap(reader.cursor, ResumeCursor(first, self._tag))
        return first

    def _take(self, offsets: Sequence[int], read: ReadMessages) -> None:
        if self._reader is not None:
            self._reader.send(self._encoding.encode(self._tag, self._keys, offsets, read))

    def _gap(self, start: int, end: int) -> None:
        if self._reader is not None:
            seen, there = ResumeCursor(start, self._tag), ResumeCursor(end, self._tag)
            self._reader.gap(str(seen), there)

    def remove(self, reader: LiveReader) -> None:
        self._reader = None
        if self._follower is not None:
            self._follower.end()

    def position(self, reader: LiveReader) -> str:
        return str(ResumeCursor(self._begin, self._tag))

    def full(self, reader: LiveReader) -> None:
        if self._follower is not None:
            self._follower.pause()

    def drained(self, reader: LiveReader) -> None:
        if self._follower is not None:
            self._follower.resume()
