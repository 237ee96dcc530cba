"""The ids of the request that is being handled: in its log lines, and of the request in its
response."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Final

from ...hub.trace_context import TRACEPARENT, trace_id

REQUEST_ID_HEADER: Final = b"x-request-id"
_SANE = re.compile(r"[A-Za-z0-9._+=:/-]{1,128}")
_TRACEPARENT: Final = TRACEPARENT.encode()


class RequestIds:
    """The ids of a request and of its trace, which may be empty."""

    __slots__ = ("is_over", "request", "trace")

    def __init__(self, request: str, trace: str) -> None:
        self.request = request
        self.trace = trace
        self.is_over = False
        """Then nothing is about it any more, though what it has begun goes on in its context."""


_current: ContextVar[RequestIds | None] = ContextVar("request_ids", default=None)


def current_ids() -> RequestIds | None:
    """Returns the ids of the request that is being handled, if there is one."""
    found = _current.get()
    return None if found is None or found.is_over else found


def enter(headers: Iterable[tuple[bytes, bytes]]) -> RequestIds:
    """Sets and returns the ids of a request in the current context; the client chooses that of the
    request if it is sane. Field names are in lower case."""
    found = trace = ""
    for name, value in headers:
        if name == REQUEST_ID_HEADER:
            given = value.decode("latin-1")
            found = given if _SANE.fullmatch(given) else ""
        elif name == _TRACEPARENT:
            trace = trace_id({TRACEPARENT: value.decode("latin-1")})
    ids = RequestIds(found or f"{random.getrandbits(64):016x}", trace)
    _current.set(ids)
    return ids
