"""Two connections that are one: what comes from either goes to the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Self, cast


class Side(asyncio.Protocol):
    """One end of a splice, `lost` when it has ended. It reads as fast as the other end writes."""

    def __init__(self, lost: Callable[[], None] = lambda: None) -> None:
        self._lost = lost
        self._transport: asyncio.Transport
        self._other: Self

    def join(self, other: Self) -> None:
        self._other, other._other = other, self

    def write(self, data: bytes) -> None:
        self._transport.write(data)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._other.write(data)

    def pause_writing(self) -> None:
        self._other._transport.pause_reading()

    def resume_writing(self) -> None:
        self._other._transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost()
        other = self.__dict__.pop("_other", None)  # the two refer to each other
        if other is not None and not other._transport.is_closing():
            other._transport.close()
