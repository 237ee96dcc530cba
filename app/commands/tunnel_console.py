"""What one can type while `warren tunnel` runs: list the last requests, show one, replay one."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Awaitable, Callable
from typing import Final

from .served_requests import Served, ServedRequests, shown

READ_BYTES: Final = 4096
STDIN: Final = 0
HELP: Final = "type 'list' for the last requests, 'show NUMBER' or 'replay NUMBER'"

Replay = Callable[[int, Served], Awaitable[None]]
"""Sends a request to the local server again; its number is that of the first time."""


class TunnelConsole:
    """Carries out commands of one line. `print_line` prints one."""

    def __init__(
        self, requests: ServedRequests, replay: Replay, print_line: Callable[[str], None]
    ) -> None:
        self._requests = requests
        self._replay = replay
        self._print = print_line

    async def run(self) -> None:
        """Carries out the lines of the standard input. Returns at its end, or when this command is
        in the background, where the terminal belongs to others."""
        lines = _lines_of_stdin()
        while (line := await lines.get()) is not None:
            await self.obey(line)

    async def obey(self, line: str) -> None:
        """Carries out one command."""
        word, _, given = line.strip().partition(" ")
        if not word:
            return
        if "list".startswith(word) and not given:
            for one in self._requests.lines() or ["no requests yet"]:
                self._print(one)
            return
        number = int(given) if given.isascii() and given.isdigit() and len(given) < 10 else 0
        is_show = "show".startswith(word)
        if not number or not (is_show or "replay".startswith(word)):
            self._print(HELP)
            return
        served = self._requests.get(number)
        if served is None:
            self._print(f"there is no request {number}: list shows those that are kept")
        elif is_show:
            for text in (f"{number}  {served}", *shown(served.request), "", *shown(served.reply)):
                self._print(text)
        else:
            await self._replay(number, served)


def _lines_of_stdin() -> asyncio.Queue[str | None]:
    """Returns the lines that are typed, and None at their end. A thread waits for them: a terminal
    that does not block for reading would not block for printing either."""
    lines: asyncio.Queue[str | None] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    # In the background reading then fails, where the whole command would be stopped.
    signal.signal(signal.SIGTTIN, signal.SIG_IGN)

    def read() -> None:
        rest = b""
        while data := _read():
            *whole, rest = (rest + data).split(b"\n")
            for line in whole:
                loop.call_soon_threadsafe(lines.put_nowait, line.decode(errors="replace"))
        loop.call_soon_threadsafe(lines.put_nowait, None)

    threading.Thread(target=read, name="console", daemon=True).start()
    return lines


def _read() -> bytes:
    """Returns what was typed; nothing at the end, without a standard input and in the
    background."""
    try:
        return os.read(STDIN, READ_BYTES)
    except OSError:
        return b""
