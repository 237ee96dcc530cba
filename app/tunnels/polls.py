"""Polls of tunnelled applications that wait: each is a socket, a timer and one object."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from ...hub.tunnels.errors import TunnelError
from ...hub.tunnels.pending_request import TunnelRequest, new_id
from ...hub.tunnels.tunnel import Tunnel
from ..access.local_requests import is_gone
from ..http.waiting_connection import Fields, WaitingConnection
from ..problems import MEDIA_TYPE, problem_of
from .links import SAFETY

if TYPE_CHECKING:
    from ..http.takeover import Successor

MESSAGE: Final = "message/http"


class LongPoll(WaitingConnection):
    """A poll that gets one request at most; implements `Poll`."""

    __slots__ = ("_private_url", "_timer", "_tunnel", "id")

    def __init__(
        self,
        tunnel: Tunnel,
        poll_id: str,
        private_url: str,
        fields: Fields,
        successor: Successor | None,
    ) -> None:
        super().__init__(fields, successor)
        self.id = poll_id
        self._tunnel = tunnel
        self._private_url = private_url
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Begins to wait; the tunnel has room for it."""
        hold_s = self._tunnel.settings.poll_hold_s
        self._timer = asyncio.get_running_loop().call_later(hold_s, self._expire)
        self._tunnel.wait(self)

    # -- the socket's side

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._leave()

    # -- the tunnel's side

    def take(self, request: TunnelRequest) -> None:
        if self.is_closing:
            self._leave()
            self._tunnel.give_back(request)
            return
        fields = [("Requesting-Client", request.client), ("Content-Type", MESSAGE)]
        self._answer(200, [next_poll(self._private_url, new_id()), *fields], request.message)

    def end(self, error: TunnelError | None) -> None:
        if error is None:
            self.close_behind()
            self._expire()
            return
        problem = problem_of(error)
        fields = [*problem.headers.items(), ("Content-Type", MEDIA_TYPE)]
        self._answer(problem.status, fields, problem.body())

    def over(self, request: TunnelRequest) -> None:
        """Does nothing: the next request needs another poll."""

    # -- inside

    def _expire(self) -> None:
        """Ends the poll with 204: its client polls the same URL again."""
        self._answer(204, [next_poll(self._private_url, self.id)], b"")

    def _leave(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._tunnel.leave(self)

    def _answer(self, status: int, fields: Fields, body: bytes) -> None:
        self._leave()
        self.answer(status, fields, body)


class ReadyPoll:
    """The answer to a poll for which a request waits already; implements `Poll`.

    The connection stays with the HTTP listener, which is a third cheaper.
    """

    def __init__(self, tunnel: Tunnel, poll_id: str, private_url: str) -> None:
        self.id = poll_id
        self._tunnel = tunnel
        self._private_url = private_url
        self._request: TunnelRequest | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises `ClientDisconnect`."""
        if is_gone(scope):
            raise ClientDisconnect
        self._tunnel.wait(self)
        request = self._request
        assert request is not None
        fields = [
            *SAFETY.items(), next_poll(self._private_url, new_id()),
            ("Requesting-Client", request.client), ("Content-Type", MESSAGE),
            ("Content-Length", str(len(request.message))),
        ]  # fmt: skip
        headers = [(name.encode(), value.encode("latin-1")) for name, value in fields]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": request.message})
        if is_gone(scope):
            self._tunnel.give_back(request)

    # -- the tunnel's side

    def take(self, request: TunnelRequest) -> None:
        self._request = request

    def end(self, error: TunnelError | None) -> None:
        """Does nothing: it does not wait."""

    def over(self, request: TunnelRequest) -> None:
        """Does nothing: the next request needs another poll."""


def next_poll(private_url: str, next_id: str) -> tuple[str, str]:
    """Returns the field with the URL to poll next."""
    return "Link", f'<{private_url}/{next_id}>; rel="next"'
