"""Limits log lines about events that can happen thousands of times a second.

The first line about an object is written at once, the next a minute later at the earliest, with
the number of lines that were left out between them.
"""

from __future__ import annotations

import logging

from ..core.clock import Clock

QUIET_MS = 60_000
MAX_LINES = 200
"""In a minute, about all objects together."""
MAX_REMEMBERED = 10_000


class _Silence:
    """The number of lines about an object that were left out since the last one."""

    __slots__ = ("left_out", "until_ms")

    def __init__(self, until_ms: int) -> None:
        self.until_ms = until_ms
        self.left_out = 0


class LimitedLog:
    """Limits the lines about each object, which `about` names."""

    def __init__(self, log: logging.Logger, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._silences: dict[str, _Silence] = {}
        self._until_ms = 0
        self._lines = 0
        self._left_out = 0

    def write(self, level: int, about: str, text: str, *arguments: object) -> None:
        """Writes the line unless there were too many."""
        if not self._log.isEnabledFor(level):
            return
        now_ms = self._clock.now_ms()
        silence = self._silences.get(about)
        if silence is not None and now_ms < silence.until_ms:
            silence.left_out += 1
        elif self._has_room(now_ms):
            left_out = silence.left_out if silence is not None else 0
            more = f" ({left_out} more like it in the last minutes)" if left_out else ""
            self._log.log(level, text + "%s", *arguments, more)
            self._remember(about, now_ms)

    def _has_room(self, now_ms: int) -> bool:
        if now_ms >= self._until_ms:
            if self._left_out:
                self._log.warning("%d similar lines suppressed", self._left_out)
            self._until_ms, self._lines, self._left_out = now_ms + QUIET_MS, 0, 0
        self._lines += 1
        self._left_out += self._lines > MAX_LINES
        return self._lines <= MAX_LINES

    def _remember(self, about: str, now_ms: int) -> None:
        self._silences.pop(about, None)
        self._silences[about] = _Silence(now_ms + QUIET_MS)
        if len(self._silences) > MAX_REMEMBERED:
            del self._silences[next(iter(self._silences))]
