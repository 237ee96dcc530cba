"""Records the changes of the management API in the audit log.

What a change has replaced and what it has made is the answer to GET of the same path, before and
after; where there is no GET, the body of the request.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final

from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive

from ....core.errors import WarrenError
from ....hub.audit.documents import MAX_CHARACTERS, differences, path_of
from ...access.local_requests import peer_of
from ...access.token_users import TokenUser
from ...problems import problem_of
from .call import Call
from .required_tags import ANYBODY, NO_LOGIN, RequiredTag
from .route import Methods

UNRECORDED: Final = frozenset(
    ("/exchanges/{vhost}/{exchange}/publish", "/queues/{vhost}/{queue}/get")
)
"""Paths that publish and read messages."""
_CHANGES: Final = frozenset(("PUT", "POST", "PATCH", "DELETE"))
_RECORDED_FAILURES: Final = (403, 507)
"""A change that was refused, and one that is in force but could not be stored."""


def is_recorded(path: str, method: str, tag: RequiredTag) -> bool:
    """Returns whether the audit log has requests like this one. What every user may send, such as
    the reports of pipeline runs, is not management."""
    return method in _CHANGES and tag not in (ANYBODY, NO_LOGIN) and path not in UNRECORDED


class BufferedBody:
    """Keeps the beginning of a body while it is read."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._kept = bytearray()

    async def receive(self) -> Message:
        message = await self._receive()
        if len(self._kept) <= MAX_CHARACTERS:
            self._kept += message.get("body", b"")
        return message

    def document(self) -> Any:
        """Returns the JSON; None for anything else, and for what is too long."""
        return _parsed(bytes(self._kept))


async def record(
    call: Call, act: Callable[[], Awaitable[Response]], methods: Methods, body: BufferedBody
) -> Response:
    """Returns the answer of `act`, which is recorded if it is a change or a refusal of one."""
    before = await _document(call, methods)
    try:
        response = await act()
    except WarrenError as error:
        status = problem_of(error).status
        if status in _RECORDED_FAILURES:
            _write(call, status, None, body.document())
        raise
    has_get = "GET" in methods and call.request.method != "POST"
    after = await _document(call, methods) if has_get else body.document()
    _write(call, response.status_code, before, after)
    return response


def _write(call: Call, status: int, before: Any, after: Any) -> None:
    user, scope = call.user, call.request.scope
    token = user.token_name if isinstance(user, TokenUser) else ""
    old, new = differences(before, after)
    call.context.hub.audit.record(
        user.name, peer_of(scope), call.request.method.lower(),
        path_of(scope["api_names"]),
        status=status, token=token, before=old, after=new,
    )  # fmt: skip


async def _document(call: Call, methods: Methods) -> Any:
    """Returns what GET answers; None if there is nothing, or the user may not see it."""
    get = methods.get("GET")
    if get is None or call.request.method == "POST" or not get.tag.has(call.user):
        return None
    try:
        response = await get.handler(replace(call, right=get.tag))
    except WarrenError:
        return None
    # A long list is sent in pieces, and too long to be kept anyway.
    is_whole = response.status_code == 200 and not isinstance(response, StreamingResponse)
    return _parsed(bytes(response.body)) if is_whole else None


def _parsed(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return None
