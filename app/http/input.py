"""Input of an HTTP connection that is not parsed yet."""

from __future__ import annotations

from typing import Final

MIN_SLICE_BYTES: Final = 128
MAX_SLICE_BYTES: Final = 4096
"""A slice ends after the first blank line between the two: no more heads than fit the lower."""


class UnparsedInput:
    """Bytes in the order in which they came, taken in slices of few requests."""

    def __init__(self) -> None:
        self._data = b""
        self._start = 0
        """The bytes before it were taken."""

    def __len__(self) -> int:
        return len(self._data) - self._start

    def add(self, data: bytes) -> None:
        self._data = self._data[self._start :] + data
        self._start = 0

    def put_back(self, data: bytes) -> None:
        """Has the end of a slice come again."""
        self._data = data + self._data[self._start :]
        self._start = 0

    def next_slice(self) -> bytes:
        """Takes the next slice."""
        data, start = self._data, self._start
        limit = start + MAX_SLICE_BYTES
        blank_line = data.find(b"\r\n\r\n", start + MIN_SLICE_BYTES, limit)
        end = limit if blank_line < 0 else blank_line + 4
        if end < len(data):
            self._start = end
        else:
            self.clear()
        return data[start:end]

    def take_all(self) -> bytes:
        """Takes what is left."""
        rest = self._data[self._start :]
        self.clear()
        return rest

    def clear(self) -> None:
        self._data = b""
        self._start = 0
