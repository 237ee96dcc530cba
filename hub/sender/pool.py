"""Connections that are kept open between requests."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Generic, TypeVar

from .connection import HttpConnection

MAX_IDLE = 2_000
"""The limit for all targets together: as many as may be in use at a time by default."""

Key = TypeVar("Key", bound=Hashable)


class Pool(Generic[Key]):
    """Keeps the last `MAX_IDLE` connections, each for `keep_s` at most; none where that is 0."""

    def __init__(self, keep_s: float) -> None:
        self._keep_s = keep_s
        self._idle: dict[HttpConnection, tuple[Key, float]] = {}  # the longest idle first
        self._by_key: dict[Key, list[HttpConnection]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def put(self, key: Key, connection: HttpConnection) -> None:
        """Keeps an idle connection."""
        if not self._keep_s:
            connection.abort()
            return
        loop = asyncio.get_running_loop()
        self._idle[connection] = (key, loop.time() + self._keep_s)
        self._by_key.setdefault(key, []).append(connection)
        if len(self._idle) > MAX_IDLE:
            self._close(next(iter(self._idle)))
        if self._timer is None:
            self._timer = loop.call_later(self._keep_s, self._close_old)

    def take(self, key: Key) -> HttpConnection | None:
        """Returns the connection that was used last, None without any."""
        while idle := self._by_key.get(key):
            connection = idle[-1]
            self.drop(connection)
            if connection.is_open:  # else the peer has just closed it
                return connection
        return None

    def drop(self, connection: HttpConnection) -> None:
        """Removes the connection, if it is idle; called for each that ends."""
        key, _ = self._idle.pop(connection, (None, 0.0))
        if key is not None:
            idle = self._by_key[key]
            idle.remove(connection)
            if not idle:
                del self._by_key[key]

    def close(self) -> None:
        """Closes all idle connections."""
        if self._timer is not None:
            self._timer.cancel()
        for connection in list(self._idle):
            self._close(connection)

    def _close(self, connection: HttpConnection) -> None:
        self.drop(connection)
        connection.abort()

    def _close_old(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = None
        while self._idle:
            connection, (_, until_s) = next(iter(self._idle.items()))
            if until_s > loop.time():
                self._timer = loop.call_at(until_s, self._close_old)
                return
            self._close(connection)
