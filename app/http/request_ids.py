"""Gives each request an id, which its response and its log lines have."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from ..access.local_requests import CYCLE
from ..logs.request_context import REQUEST_ID_HEADER, enter


class IdentifiedRequests:
    """ASGI middleware, the outermost one of the HTTP listener."""

    def __init__(self, application: ASGIApp) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        ids = enter(scope["headers"])
        cycle = scope["extensions"][CYCLE]["cycle"]
        cycle.default_headers = [
            *cycle.default_headers,
            (REQUEST_ID_HEADER, ids.request.encode()),
        ]
        try:
            await self._application(scope, receive, send)
        finally:
            ids.is_over = True
