"""An answer without a body."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.types import Receive, Scope, Send


class EmptyResponse:
    """An answer that can be sent any number of times: it is encoded once."""

    def __init__(self, status: int, headers: Mapping[str, str]) -> None:
        fields = {**headers, "Content-Length": "0"}
        encoded = [(name.encode(), value.encode()) for name, value in fields.items()]
        self._start = {"type": "http.response.start", "status": status, "headers": encoded}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send(self._start)
        await send({"type": "http.response.body", "body": b""})
