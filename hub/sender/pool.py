"""Connections that are kept open between requests."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Generic, TypeVar

from .connection import Connection

MAX_IDLE = 2_000
"""Of all targets together: as many as may be in use at once by default."""

Key = TypeVar("Key", bound=Hashable)


class Pool(Generic[Key]):
    """Keeps each for `keep_s` at most, none where it is 0, and the last `MAX_IDLE` of them."""

    def __init__(self, keep_s: float) -> None:
        self._keep_s = keep_s
        self._idle: dict[Connection, tuple[Key, float]] = {}  # the longest idle first
        self._by_key: dict[Key, list[Connection]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def put(self, key: Key, connection: Connection) -> None:
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

    def take(self, key: Key) -> Connection | None:
        """The one that was used last."""
        while idle := self._by_key.get(key):
            connection = idle[-1]
            self.drop(connection)
            if connection.is_open:  # else the peer has closed it a moment ago
                return connection
        return None

    def drop(self, connection: Connection) -> None:
        """Forgets it, if it is here; called for each connection that ends."""
        key, _ = self._idle.pop(connection, (None, 0.0))
        if key is not None:
            idle = self._by_key[key]
            idle.remove(connection)
            if not idle:
                del self._by_key[key]

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for connection in list(self._idle):
            self._close(connection)

    def _close(self, connection: Connection) -> None:
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
