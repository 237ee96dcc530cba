"""Streams of requests to a tunnelled application: one connection takes requests one after another.

A stream gets as many requests as it has credit, then the next one after each reply. Replies are
posted to Request URLs, as those to polls are.
"""

from __future__ import annotations

import asyncio
import base64
from typing import Final, cast

import msgspec

from ...hub.tunnels.errors import TunnelError
from ...hub.tunnels.pending_request import TunnelRequest, new_id
from ...hub.tunnels.tunnel import Tunnel
from ..http.unread import UnreadTimer
from ..problems import problem_of

CREDIT: Final = 8
"""Requests without a reply that a stream may have; each can be as long as a body may be."""
SIGN_OF_LIFE_S: Final = 15.0
"""Between comments or pings, so that proxies keep a silent connection open."""
FULL_BYTES: Final = 64 * 1024
"""Unsent bytes above which a stream takes no requests."""


class RequestStream(asyncio.Protocol):
    """A connection that takes requests; implements `Poll`. Subclasses encode them."""

    __slots__ = (
        "_credit", "_digest", "_is_full", "_is_waiting", "_transport", "_tunnel", "_unread", "id",
        "private_url",
    )  # fmt: skip

    def __init__(self, tunnel: Tunnel, poll_id: str, private_url: str, credit: int) -> None:
        self.id = poll_id
        self.private_url = private_url
        self._tunnel = tunnel
        self._digest = tunnel.registration.digest
        """The digest of the token under which it began."""
        self._credit = credit
        self._is_full = False
        self._is_waiting = False
        self._unread = UnreadTimer()
        self._transport: asyncio.Transport

    def encode(self, request: TunnelRequest) -> bytes:
        """Returns a request as the client gets it."""
        raise NotImplementedError

    def encode_end(self, error: TunnelError | None) -> bytes:
        """Returns the end of the stream as the client gets it."""
        raise NotImplementedError

    def begin(self) -> None:
        """Begins to take requests; the tunnel has room for it."""
        self._wait()

    # -- the socket's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=FULL_BYTES)

    def connection_lost(self, exc: Exception | None) -> None:
        self._unread.stop()
        self._stop()

    def pause_writing(self) -> None:
        self._is_full = True
        self._unread.start(self._transport)
        self._stop()

    def resume_writing(self) -> None:
        self._is_full = False
        self._unread.resume(self._transport)
        self._wait()

    # -- the tunnel's side

    def take(self, request: TunnelRequest) -> None:
        self._is_waiting = False
        if self._transport.is_closing():
            self._tunnel.give_back(request)
            return
        self._credit -= 1
        self.write(self.encode(request))
        self._wait()

    def over(self, request: TunnelRequest) -> None:
        self._credit += 1
        self._wait()

    def end(self, error: TunnelError | None) -> None:
        self._is_waiting = False
        if not self._transport.is_closing():
            self.write(self.encode_end(error))
            self._unread.close(self._transport)

    # -- inside

    def write(self, data: bytes) -> None:
        """Writes a chunk (RFC 9112 7.1)."""
        if data:
            self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))

    def _wait(self) -> None:
        may_take = self._credit > 0 and not self._is_full and not self._transport.is_closing()
        if not may_take or self._is_waiting:
            return
        refusal = self._tunnel.refusal(self._digest)
        if refusal is not None:  # The label was released or its token changed before it waited.
            self.end(refusal)
            return
        self._is_waiting = True
        self._tunnel.wait(self)

    def _stop(self) -> None:
        self._is_waiting = False
        self._tunnel.leave(self)


class RequestEvents(RequestStream):
    """Server-Sent Events `request`, each with an id and a Request URL of its own."""

    __slots__ = ("_timer",)

    def __init__(self, tunnel: Tunnel, poll_id: str, private_url: str) -> None:
        super().__init__(tunnel, poll_id, private_url, CREDIT)
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        self._show_life()
        super().begin()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def encode(self, request: TunnelRequest) -> bytes:
        self.id = new_id()
        document = {
            "reply": f"{self.private_url}/{request.id}",
            "client": request.client,
            "message": base64.b64encode(request.message).decode(),
        }
        data = msgspec.json.encode(document)
        return b"event: request\nid: %b\ndata: %b\n\n" % (request.id.encode(), data)

    def encode_end(self, error: TunnelError | None) -> bytes:
        if error is None:
            return b""
        return b"event: error\ndata: %b\n\n" % problem_of(error).body().strip()

    def _show_life(self) -> None:
        self.write(b": waiting\n\n")
        self._timer = asyncio.get_running_loop().call_later(SIGN_OF_LIFE_S, self._show_life)


class MessageStream(RequestStream):
    """The requests themselves, as `application/http` (RFC 9112 10.2), one at a time: the next one
    follows the reply to the last, which is posted to the URL of the stream."""

    __slots__ = ()

    def __init__(self, tunnel: Tunnel, poll_id: str, private_url: str) -> None:
        super().__init__(tunnel, poll_id, private_url, 1)

    def encode(self, request: TunnelRequest) -> bytes:
        return request.message

    def encode_end(self, error: TunnelError | None) -> bytes:
        return b""
