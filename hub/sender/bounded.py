"""Connections that take only so many bytes of an answer.

aiohttp bounds each header, but not the interim responses (RFC 9110 15.2) before the answer: a
target that sends `100 Continue` without end would have it parse and drop them, a socket buffer
at a time, until the delivery's time is over, and hold up all else on the loop.
"""

from __future__ import annotations

import asyncio
import functools
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler

from .port import HEAD_BYTES


class AnswerTooLong(aiohttp.ClientError):
    """The target sent more than anybody would read."""


class BoundedHandler(ResponseHandler):
    """Cuts the connection when more than `max_bytes` have come in since a request began."""

    def __init__(self, loop: asyncio.AbstractEventLoop, max_bytes: int) -> None:
        super().__init__(loop)
        self._max_bytes = max_bytes
        self._left_bytes = max_bytes

    def set_response_params(self, **given: Any) -> None:
        """Called as a request begins. What comes while none is out counts to the last one."""
        self._left_bytes = self._max_bytes
        super().set_response_params(**given)

    def data_received(self, data: bytes) -> None:
        if len(data) <= self._left_bytes:
            self._left_bytes -= len(data)
            super().data_received(data)
        else:
            self._cut(data[: self._left_bytes])

    def _cut(self, last: bytes) -> None:
        """What is in the bound is still parsed: a head there counts, however long the body."""
        self._left_bytes = 0
        super().data_received(last)
        self.set_exception(AnswerTooLong(f"the answer is longer than {self._max_bytes} bytes"))
        if self.transport is not None:
            self.transport.abort()


class BoundedConnector(aiohttp.TCPConnector):
    """`max_body_bytes` is for each answer, beside the allowance for its heads."""

    def __init__(self, max_body_bytes: int, **given: Any) -> None:
        super().__init__(**given)
        self._max_bytes = max_body_bytes + HEAD_BYTES
        # aiohttp has no public way to choose the protocol of its connections.
        self._factory = functools.partial(self._make_handler)

    def _make_handler(self) -> ResponseHandler:
        return BoundedHandler(self._loop, self._max_bytes)
