"""Readers of a stream in this process: they get messages as they are committed, with offsets.

They are no consumers: nothing is acknowledged, and an exchange's kept messages can be read so too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from ..message.model import Numbered, ReadMessages
from ..message.queue_entry import MessageRange
from ..queue.cursor import Cursor
from ..queue.queue import DISPATCH_BYTES
from ..queue.stream_range import at_most
from ..replay.matcher import Matcher
from .reader import MessageReader

if TYPE_CHECKING:
    from ..broker import Broker
    from ..queue.stream import StreamQueue

AT_ONCE: Final = 100
"""Messages in one step: some 0.4 ms."""
_Part = tuple[MessageRange, int]
"""Messages, and the offset of the first one."""


class StreamFollower:
    """Reads a stream from `start` on, once `resume` is called; of an exchange only what one of
    `matchers` matches.

    `on_messages` gets offsets, and a function that reads their messages. `on_gap` gets two offsets
    between which messages are missing because retention dropped them, or the disk can't read them.
    `on_end` is called when the stream is deleted, and with the error that stopped the reading.
    """

    def __init__(
        self,
        broker: Broker,
        queue: StreamQueue,
        start: int,
        matchers: Sequence[Matcher],
        on_messages: Callable[[Sequence[int], ReadMessages], None],
        on_gap: Callable[[int, int], None],
        on_end: Callable[[Exception | None], None],
    ) -> None:
        self._broker = broker
        self._queue = queue
        self._matchers = matchers
        self._on_messages = on_messages
        self._on_gap = on_gap
        self._on_end = on_end
        self._reader = MessageReader()
        log = queue.log
        self._cursor = Cursor(log, broker.store, start, self._wake, shared=log.read_ahead)
        self._reached = start
        """The offset behind what was passed on, or told as a gap."""
        self._is_paused = True
        self._is_running = False
        self._is_ended = False
        log.watchers[self._wake] = None

    def pause(self) -> None:
        """Sends nothing more until `resume`."""
        self._is_paused = True

    def resume(self) -> None:
        self._is_paused = False
        self._wake()

    def end(self) -> None:
        self._is_ended = True
        self._queue.log.watchers.pop(self._wake, None)
        self._cursor.end()

    @property
    def _may_read(self) -> bool:
        queue = self._queue
        return not (self._is_paused or self._is_ended or queue.deleted or queue.is_paused)

    def _wake(self) -> None:
        if self._queue.deleted and not self._is_ended:
            self.end()
            self._on_end(None)
        if not self._is_running and self._may_read:
            self._is_running = True
            self._broker.slices.start_soon(self._read())

    def _read(self) -> Iterator[None]:
        """Reads what there is, in steps of a slice."""
        try:
            yield from self._steps()
        except Exception as error:
            # Without an end the reader would wait for messages that never come.
            self.end()
            self._on_end(error)
            raise
        finally:
            self._is_running = False

    def _steps(self) -> Iterator[None]:
        while self._may_read:
            parts, is_end = self._gather()
            self._pass_on(parts)
            if is_end:
                break
            yield

    def _gather(self) -> tuple[list[_Part], bool]:
        """Returns the next messages without a gap between them, and whether there are no more.
        Small batches are passed on together, because each call costs the reader a write."""
        cursor, parts = self._cursor, list[_Part]()
        room, room_bytes = AT_ONCE, DISPATCH_BYTES
        while room > 0 and room_bytes > 0:
            messages = cursor.next()
            if cursor.offset > self._reached:
                if parts:
                    return parts, False
                self._on_gap(self._reached, cursor.offset)
            if messages is None:
                self._reached = max(self._reached, cursor.offset)
                return parts, True
            part = at_most(messages, room)
            parts.append((part, cursor.offset))
            self._reached = cursor.offset = cursor.offset + part.count
            room -= part.count
            room_bytes -= part.entry.batch.size_bytes
        return parts, False

    def _pass_on(self, parts: Sequence[_Part]) -> None:
        found = [(part, self._matching(part), offset - part.low) for part, offset in parts]
        offsets = [at + shift for _, kept, shift in found for at in kept]
        if offsets:
            self._on_messages(offsets, lambda: self._messages(found))

    def _matching(self, part: MessageRange) -> Sequence[int]:
        """Returns the positions of the messages that match."""
        positions = range(part.low, part.high)
        if not self._matchers:
            return positions
        entry, matchers = part.entry, self._matchers
        return [
            at
            for at in positions
            if any(one.matches(entry.batch, entry.index(at)) for one in matchers)
        ]

    def _messages(self, found: Sequence[tuple[MessageRange, Sequence[int], int]]) -> list[Numbered]:
        reader = self._reader
        return [
            message
            for part, kept, _ in found
            for message in (
                reader.read_positions(part, kept) if self._matchers else reader.read_all(part, part)
            )
        ]
