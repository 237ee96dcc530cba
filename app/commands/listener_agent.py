"""Reads `/stream` from outside, as `warren listen` and `tail` do: connects again, and goes on."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from contextlib import closing
from typing import Final
from urllib.parse import urlencode

import click

from .client import place, refused, segments
from .exit_codes import Unreachable
from .login import Login
from .message_handlers import Handle
from .queue_socket import QueueSocket
from .stream_connection import ConnectionLost, Message, StreamReading, StreamRefused, refusal_of
from .stream_lines import StreamLines

FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 30.0
PREFETCH: Final = 100
"""Of a queue whose messages are only printed."""


class ListenerAgent:
    """Passes each message of a source to `handle`.

    One message that could not be handled is returned to its queue after a pause, which doubles
    with each failure. `prefetch` is how many messages the agent has at a time.
    """

    def __init__(
        self,
        login: Login,
        vhost: str,
        source: tuple[str, str],
        keys: Sequence[str],
        cursor: str,
        handle: Handle,
        prefetch: int = PREFETCH,
    ) -> None:
        self._login = login
        self._path = f"{place(vhost)}/stream{segments(*source)}"
        self._keys = keys
        self._cursor = cursor
        self._handle = handle
        self._prefetch = prefetch
        self._is_acked = source[0] == "q" and not cursor
        """Whether messages are acknowledged: not those of a stream, which is a queue by name."""
        self._has_answered = False
        self._connect_pause_s = self._retry_pause_s = FIRST_PAUSE_S
        self._handled = self._failed = 0

    def run(self, count: int = 0) -> bool:
        """Handles `count` messages, or all for 0; returns whether none has failed.

        Raises `RequestRefused`, and `Unreachable` if the server can't be reached at first.
        """
        while True:
            try:
                if self._read(count):
                    return not self._failed
                reason = "the server has ended the stream"
            except StreamRefused as error:
                self._has_answered, reason = True, str(error)
                if error.is_final:
                    raise refused(self._login.url, error.status, reason) from error
            except ConnectionLost as error:
                reason = str(error)
                if not self._has_answered:
                    url = self._login.url
                    raise Unreachable(f"the server at {url} can't be reached: {reason}") from error
            say(f"{reason}; connecting again in {self._connect_pause_s:.1f} s")
            time.sleep(self._connect_pause_s * random.uniform(0.5, 1))
            self._connect_pause_s = min(2 * self._connect_pause_s, LONGEST_PAUSE_S)

    def _read(self, count: int) -> bool:
        """Handles what one connection brings; returns whether that was enough. Raises
        `ConnectionLost`, `StreamRefused`."""
        with closing(self._open()) as reading:
            self._has_answered = True
            self._connect_pause_s = FIRST_PAUSE_S
            for item in reading.items():
                if "id" not in item:
                    self._note(item)
                    continue
                is_done = self._take(item)
                self._handled += 1
                is_last = self._handled == count
                if not (is_done or is_last):
                    self._pause()
                reading.settle(item, is_done=is_done)
                if is_last:
                    return True
        return False

    def _open(self) -> StreamReading:
        try:
            if self._is_acked:
                return QueueSocket(self._login, self._target(), self._prefetch)
        except StreamRefused as error:
            if error.field != "ack":
                raise
            self._is_acked = False
        return StreamLines(self._login, self._target())

    def _target(self) -> str:
        query = [("key", key) for key in self._keys]
        query += [("cursor", self._cursor)] if self._cursor else []
        return f"{self._path}?{urlencode(query)}" if query else self._path

    def _take(self, message: Message) -> bool:
        problem = self._handle(message)
        self._cursor = message.get("cursor", self._cursor)
        if problem:
            self._failed += 1
            say(f"message {message['id']}: {problem}")
        else:
            self._retry_pause_s = FIRST_PAUSE_S
        return not problem

    def _pause(self) -> None:
        """Waits before a message is returned, which comes again at once."""
        if self._is_acked:
            time.sleep(self._retry_pause_s)
            self._retry_pause_s = min(2 * self._retry_pause_s, LONGEST_PAUSE_S)

    def _note(self, notice: Message) -> None:
        """Raises `StreamRefused` at the end of the stream."""
        if "refused" in notice:
            say(notice["problem"]["detail"])  # of an ack: the message had returned to the queue
        elif notice["event"] == "error":
            raise refusal_of(notice["problem"])
        elif notice["event"] == "gap":
            self._cursor = notice["cursor"]
            say(f"messages are missing between {notice['from']} and {notice['to']}")


def say(line: str) -> None:
    """Prints to the standard error; what others sent can't control the terminal."""
    click.echo("".join(char if char.isprintable() else "?" for char in line), err=True)
