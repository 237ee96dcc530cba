"""AMQP over WebSocket on the HTTP port: which upgrades are taken, and the answer to them.

Any path will do that is none of HTTP's own, as with LavinMQ, whose JavaScript client names no
subprotocol and none means `amqp`. An upgrade needs no credentials, AMQP asks for them; what a
browser sends for a page of somebody else's is refused by its Origin (RFC 6455 10.2), since with the
user `guest` a page from anywhere could log in to a server on its visitor's machine.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from hashlib import sha1
from typing import NamedTuple

from ..core.server.listener import Listener
from ..core.server.websocket import WebSocket
from ..core.wire.proxy import Relayed
from .clients import Clients
from .local_requests import LocalHosts, is_loopback, is_relayed
from .origins import Origins
from .problems import Problem

SUBPROTOCOL = "amqp"
VERSION = "13"
_ACCEPT_KEY = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""Of RFC 6455 1.3."""
_KEY_BYTES = 16

Headers = Sequence[tuple[bytes, bytes]]


class Taken(NamedTuple):
    """The answer to an upgrade, and who goes on behind it."""

    answer: bytes
    protocol: WebSocket


class Upgrades:
    """Takes connections of the HTTP listener over for AMQP; `is_taken` tells whether a path means
    something over HTTP, and who connects there expects another protocol than AMQP."""

    def __init__(
        self,
        listener: Listener,
        origins: Origins,
        hosts: LocalHosts,
        clients: Clients | None = None,
        *,
        lets_guest_in: bool = True,
        is_taken: Callable[[bytes], bool] = lambda path: False,
    ) -> None:
        self._is_taken = is_taken
        self._clients = clients
        self._lets_guest_in = lets_guest_in
        self._listener = listener
        self._origins = origins
        self._hosts = hosts

    def take(self, headers: Headers, peer: str, path: bytes) -> Taken:
        """`peer` is the address of who sends them, `path` is not decoded.

        Raises `Problem`: 400, 403 for a page of somebody else's, 404 for a path of HTTP's own, 426
        for another version.
        """
        if self._is_taken(path):
            raise Problem(
                404,
                f"no WebSocket at '{path.decode('latin-1')}', which is for HTTP requests: "
                f"AMQP over WebSocket is spoken at '/'",
            )
        version = _only(headers, b"sec-websocket-version")
        if version != VERSION:
            raise Problem(
                426,
                f"Sec-WebSocket-Version is '{version}', only {VERSION} is spoken",
                headers={"Upgrade": "websocket", "Sec-WebSocket-Version": VERSION},
            )
        origin, host = _only(headers, b"origin"), _only(headers, b"host")
        if origin and not self._origins.allow(origin, host):
            raise Problem(
                403,
                f"a page of {origin} may not connect; the setting websocket_origins allows more",
            )
        if self._listener.stopping:
            raise Problem(503, "the server stops")
        lines = [
            b"HTTP/1.1 101 Switching Protocols",
            b"Upgrade: websocket",
            b"Connection: Upgrade",
            b"Sec-WebSocket-Accept: " + _accepted(_only(headers, b"sec-websocket-key")),
        ]
        if _subprotocol(headers):
            lines.append(b"Sec-WebSocket-Protocol: " + SUBPROTOCOL.encode())
        protocol = WebSocket(self._listener, self._relayed(headers, host, peer))
        return Taken(b"\r\n".join(lines) + b"\r\n\r\n", protocol)

    def _relayed(self, headers: Headers, host: str, peer: str) -> Relayed | None:
        """Whom a proxy passes on. Who is behind one on this machine that is not listed may be
        anybody; elsewhere its address is all that is known."""
        if self._clients is not None and self._clients.trusts(peer):
            address = self._clients.behind(headers)
            if address is None or is_loopback(address):
                return Relayed()
            return Relayed((address, 0))
        elsewhere = (
            not self._lets_guest_in
            or is_relayed(headers)
            or not self._hosts.include(host.encode("latin-1"))
        )
        return Relayed() if elsewhere and is_loopback(peer) else None


def is_offer(method: bytes, http_version: str, headers: Headers) -> bool:
    """Whether an offer to upgrade is one that may be taken (RFC 6455 4.1)."""
    tokens = {
        token.strip().lower()
        for name, value in headers
        if name == b"upgrade"
        for token in value.split(b",")
    }
    return method == b"GET" and http_version == "1.1" and b"websocket" in tokens


def _subprotocol(headers: Headers) -> str:
    """Empty if the client names none."""
    named = [
        token.strip()
        for name, value in headers
        if name == b"sec-websocket-protocol"
        for token in value.decode("latin-1").split(",")
    ]
    if named and SUBPROTOCOL not in named:
        raise Problem(
            400, f"Sec-WebSocket-Protocol is '{', '.join(named)}', only {SUBPROTOCOL} is spoken"
        )
    return SUBPROTOCOL if named else ""


def _accepted(key: str) -> bytes:
    """What proves that the key was read by a WebSocket server (RFC 6455 4.2.2)."""
    try:
        fits = len(base64.b64decode(key, validate=True)) == _KEY_BYTES
    except ValueError:  # not base64, not even ASCII
        fits = False
    if not fits:
        raise Problem(400, f"Sec-WebSocket-Key has to be {_KEY_BYTES} bytes in base64")
    return base64.b64encode(sha1(key.encode() + _ACCEPT_KEY).digest())


def _only(headers: Headers, wanted: bytes) -> str:
    """A field that may come once; empty if it does not."""
    found = [value for name, value in headers if name == wanted]
    if len(found) > 1:
        raise Problem(400, f"the field {wanted.decode()} comes {len(found)} times")
    return found[0].decode("latin-1") if found else ""
