"""The last lines of the log, for those who read it over HTTP."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from .formats import JsonFormatter

LINES_MAX: Final = 1_000
LINE_CHARACTERS_MAX: Final = 10_000
Line = tuple[int, str]
"""A number that grows, and a line as JSON."""


class LogTail(logging.Handler):
    """Keeps the last lines, and wakes readers when there are more; from any thread."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JsonFormatter())
        self.is_closed = False
        self._lines: deque[Line] = deque(maxlen=LINES_MAX)
        self._next = 1
        self._readers: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)[:LINE_CHARACTERS_MAX]
        except Exception:
            self.handleError(record)
            return
        self._lines.append((self._next, line))
        self._next += 1
        self._wake()

    def announce(self, logger: logging.Logger, text: str) -> None:
        """Keeps an event of level `info` whatever the level of the logger is; where that lets it
        pass, it is logged as any other."""
        record = logger.makeRecord(logger.name, logging.INFO, "", 0, text, (), None)
        if logger.isEnabledFor(logging.INFO):
            logger.handle(record)
        else:
            self.handle(record)

    async def end(self) -> None:
        """Ends all reading: the server stops."""
        self.is_closed = True
        self._wake()

    def _wake(self) -> None:
        for woken, loop in tuple(self._readers.items()):
            loop.call_soon_threadsafe(woken.set)

    def lines_after(self, last: int) -> list[Line]:
        """Returns the lines behind the one with this number, as far as they are kept."""
        return [line for line in tuple(self._lines) if line[0] > last]

    def newest(self, count: int) -> int:
        """Returns the number behind which there are at most `count` lines."""
        return max(0, self._next - 1 - count)

    @property
    def reader_count(self) -> int:
        return len(self._readers)

    @contextmanager
    def reading(self) -> Iterator[asyncio.Event]:
        """Enters with an event, which is set when there are more lines."""
        woken = asyncio.Event()
        self._readers[woken] = asyncio.get_running_loop()
        try:
            yield woken
        finally:
            del self._readers[woken]
