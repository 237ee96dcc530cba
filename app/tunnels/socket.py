"""Requests to a tunnelled application over WebSocket, and its replies.

Both are text messages with JSON: `{"id", "client", "message"}` to the application and
`{"id", "message"}` from it, where `message` is base64. Only what fails is answered:
`{"id", "error"}`. Pings keep the connection open, and show when nobody is there any more: requests
would be passed on to it until TCP gives up, a quarter of an hour later.
"""

from __future__ import annotations

import asyncio
import base64
from typing import Final

import msgspec

from ...core.resources.partial_content import PartialContents
from ...core.wire.websocket import NORMAL, PING, PONG, TEXT, Ending, close_frame, frame
from ...hub.errors import HubError
from ...hub.tunnels.errors import TunnelError
from ...hub.tunnels.pending_request import TunnelRequest, new_id
from ...hub.tunnels.reply import MAX_HEAD_BYTES, bad, read_reply
from ...hub.tunnels.tunnel import Tunnel
from ..http.partial_messages import PartialMessages
from ..problems import problem_of
from .links import claimed_by
from .streams import CREDIT, SIGN_OF_LIFE_S, RequestStream

GOING_AWAY: Final = 1001
"""The close code of a server that stops (RFC 6455 7.4.1)."""
POLICY: Final = 1008
UNHEARD_MAX: Final = 2
"""Pings in a row without anything from the client."""


class _Reply(msgspec.Struct):
    id: str
    message: str


class RequestSocket(RequestStream):
    """One WebSocket; the tunnel has room for it."""

    __slots__ = ("_inbound", "_is_ended", "_timer", "_unheard")

    def __init__(
        self, tunnel: Tunnel, poll_id: str, private_url: str, unfinished: PartialContents
    ) -> None:
        super().__init__(tunnel, poll_id, private_url, CREDIT)
        size = tunnel.settings.max_body_bytes + MAX_HEAD_BYTES
        in_base64 = size * 4 // 3 + 1024  # with the rest of the message
        self._inbound = PartialMessages(in_base64, unfinished, claimed_by(tunnel), self._end)
        self._is_ended = False
        self._unheard = 0
        """Pings since the client sent anything."""
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        self._ping_later()
        super().begin()

    # -- the socket's side

    def data_received(self, data: bytes) -> None:
        self._unheard = 0
        if self._is_ended:
            return
        for text in self._inbound.receive_messages(data):
            self._take_reply(text)
        if self._inbound.ping is not None:
            self.write(frame(PONG, self._inbound.ping))
            self._inbound.ping = None
        if self._inbound.ended is not None:
            self._end(self._inbound.ended)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._timer is not None:
            self._timer.cancel()
        self._inbound.close()
        del self._inbound  # The two refer to each other.
        if not self._is_ended:  # After the server's end, replies may still be posted.
            self._tunnel.abandon(self)

    def pause_writing(self) -> None:
        """Reads nothing more: each reply could be a bad one, which is answered."""
        self._transport.pause_reading()
        super().pause_writing()

    def resume_writing(self) -> None:
        self._transport.resume_reading()
        super().resume_writing()

    def write(self, data: bytes) -> None:
        self._transport.write(data)

    # -- the tunnel's side

    def encode(self, request: TunnelRequest) -> bytes:
        self.id = new_id()
        message = base64.b64encode(request.message).decode()
        return _text({"id": request.id, "client": request.client, "message": message})

    def encode_end(self, error: TunnelError | None) -> bytes:
        self._is_ended = True
        if error is None:
            return close_frame(GOING_AWAY, "the server is stopping")
        return _text({"error": _problem(error)}) + close_frame(POLICY, error.title)

    # -- inside

    def _ping_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(SIGN_OF_LIFE_S, self._ping)

    def _ping(self) -> None:
        if self._unheard == UNHEARD_MAX:
            self._transport.abort()
            return
        if not self._is_full:  # Who does not read gets no ping either; `UnreadTimer` ends that.
            self._unheard += 1
            self.write(frame(PING, b""))
        self._ping_later()

    def _take_reply(self, text: bytes) -> None:
        request_id = None
        try:
            found = msgspec.json.decode(text, type=_Reply)
            request_id = found.id
            request = self._tunnel.request(found.id)
            message = base64.b64decode(found.message, validate=True)
            self._tunnel.reply(request, read_reply(message, is_head=request.is_head))
        except HubError as error:
            self.write(_text({"id": request_id, "error": _problem(error)}))
        except (msgspec.DecodeError, ValueError) as error:
            refused = bad(f"is no JSON with 'id' and 'message' in base64: {error}")
            self.write(_text({"id": request_id, "error": _problem(refused)}))

    def _end(self, ending: Ending) -> None:
        self._stop()
        self._tunnel.abandon(self)
        self._is_ended = True
        self.write(close_frame(ending.code or NORMAL, ending.reason))
        self._unread.close(self._transport)


def _text(document: dict[str, object]) -> bytes:
    return frame(TEXT, msgspec.json.encode(document))


def _problem(error: HubError) -> msgspec.Raw:
    return msgspec.Raw(problem_of(error).body().strip())
