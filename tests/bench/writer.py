"""Writes ready-made publishes to a socket."""

from __future__ import annotations

from .client import Client
from .frames import Stream

CHUNK_BYTES = 1 << 18


class Writer:
    """Walks around a stream of frames and writes the next `count` messages of it."""

    def __init__(self, client: Client, stream: Stream) -> None:
        self._socket = client.socket
        self._view = memoryview(stream.data)
        self._stream = stream
        self._position = 0

    def write(self, count: int) -> int:
        """Gives how many were written: fewer than `count` at the end of the stream."""
        written = min(count, self._stream.count - self._position)
        start = self._position * self._stream.size
        self._socket.sendall(self._view[start : start + written * self._stream.size])
        self._position = (self._position + written) % self._stream.count
        return written
