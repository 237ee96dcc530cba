"""AMQP over WebSocket on the HTTP port: accepts or refuses upgrades.

Any path that HTTP does not serve is accepted, as in LavinMQ, and so is an upgrade without a
subprotocol, as LavinMQ's JavaScript client sends it. Credentials are checked by the AMQP login.
Origins of other web pages are refused (RFC 6455 10.2), since any page could otherwise log in as
`guest` to a server on its visitor's machine.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from hashlib import sha1
from typing import NamedTuple, Protocol

from ...core.server.listener import Listener
from ...core.server.websocket import WebSocket
from ...core.wire.proxy import Relayed
from ..access.clients import Clients
from ..access.local_requests import LocalHosts, is_loopback, is_relayed
from ..access.origins import AllowedOrigins
from ..problems import Problem

SUBPROTOCOL = "amqp"
VERSION = "13"
_ACCEPT_KEY = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""The constant of RFC 6455 1.3."""
_KEY_BYTES = 16

Headers = Sequence[tuple[bytes, bytes]]


class AcceptedUpgrade(NamedTuple):
    """The 101 response to an upgrade, and the protocol that takes the connection over."""

    response: bytes
    protocol: WebSocket


class UpgradeRules(Protocol):
    """What becomes of offers of WebSocket."""

    def is_for_application(self, path: bytes, headers: Headers, /) -> bool:
        """Returns whether the application decides about an offer, by its path and header fields."""

    def accept(self, headers: Headers, peer: str, path: bytes) -> AcceptedUpgrade:
        """Accepts any other offer. Raises `Problem`."""


class Upgrades:
    """Takes over connections of the HTTP listener for AMQP.

    `is_http_path` says whether HTTP serves a path; upgrades there are refused.
    """

    def __init__(
        self,
        listener: Listener,
        origins: AllowedOrigins,
        hosts: LocalHosts,
        clients: Clients | None = None,
        *,
        lets_guest_in: bool = True,
        is_http_path: Callable[[bytes], bool] = lambda path: False,
        is_for_application: Callable[[bytes, Headers], bool] = lambda path, headers: False,
        has_amqp: bool = True,
    ) -> None:
        self._is_http_path = is_http_path
        self.is_for_application = is_for_application
        self._has_amqp = has_amqp
        self._clients = clients
        self._lets_guest_in = lets_guest_in
        self._listener = listener
        self._origins = origins
        self._hosts = hosts

    def accept(self, headers: Headers, peer: str, path: bytes) -> AcceptedUpgrade:
        """Accepts an upgrade. `peer` is the address of the peer, `path` is not decoded.

        Raises `Problem`: 400, 403 for the origin of another page, 404 for a path that HTTP serves,
        426 for another WebSocket version, 501 if the engine's AMQP is elsewhere.
        """
        if self._is_http_path(path):
            raise Problem(
                404,
                f"no WebSocket at '{path.decode('latin-1')}', which is for HTTP requests: "
                f"connect to '/' for AMQP over WebSocket",
            )
        if not self._has_amqp:
            raise Problem(
                501, "AMQP needs the embedded engine, and this hub runs on RabbitMQ: connect there"
            )
        lines = switching(headers)
        origin, host = _only(headers, b"origin"), _only(headers, b"host")
        if origin and not self._origins.allow(origin, host):
            raise Problem(
                403,
                f"a page of {origin} may not connect; the setting websocket_origins allows more",
            )
        if self._listener.stopping:
            raise Problem(503, "the server is stopping")
        if _subprotocol(headers):
            lines.append(b"Sec-WebSocket-Protocol: " + SUBPROTOCOL.encode())
        protocol = WebSocket(self._listener, self._relayed(headers, host, peer))
        return AcceptedUpgrade(b"\r\n".join(lines) + b"\r\n\r\n", protocol)

    def _relayed(self, headers: Headers, host: str, peer: str) -> Relayed | None:
        """Returns the client behind a proxy, or None if there is no proxy.

        A client behind a local proxy that is not trusted counts as remote; of a proxy on another
        machine only its own address is known.
        """
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


def switching(headers: Headers) -> list[bytes]:
    """Returns the lines of the 101 that accepts a handshake (RFC 6455 4.2.2).

    Raises `Problem`: 400 for a bad key, 426 for another WebSocket version.
    """
    version = _only(headers, b"sec-websocket-version")
    if version != VERSION:
        raise Problem(
            426,
            f"Sec-WebSocket-Version is '{version}'; only {VERSION} is supported",
            headers={"Upgrade": "websocket", "Sec-WebSocket-Version": VERSION},
        )
    return [
        b"HTTP/1.1 101 Switching Protocols",
        b"Upgrade: websocket",
        b"Connection: Upgrade",
        b"Sec-WebSocket-Accept: " + _accepted(_only(headers, b"sec-websocket-key")),
    ]


def is_offer(method: bytes, http_version: str, headers: Headers) -> bool:
    """Returns whether the request is a WebSocket handshake (RFC 6455 4.1)."""
    tokens = {
        token.strip().lower()
        for name, value in headers
        if name == b"upgrade"
        for token in value.split(b",")
    }
    return method == b"GET" and http_version == "1.1" and b"websocket" in tokens


def _subprotocol(headers: Headers) -> str:
    """Returns the subprotocol, or an empty text if the client names none."""
    named = [
        token.strip()
        for name, value in headers
        if name == b"sec-websocket-protocol"
        for token in value.decode("latin-1").split(",")
    ]
    if named and SUBPROTOCOL not in named:
        raise Problem(
            400, f"Sec-WebSocket-Protocol is '{', '.join(named)}'; only {SUBPROTOCOL} is supported"
        )
    return SUBPROTOCOL if named else ""


def _accepted(key: str) -> bytes:
    """Returns the value of Sec-WebSocket-Accept (RFC 6455 4.2.2)."""
    try:
        fits = len(base64.b64decode(key, validate=True)) == _KEY_BYTES
    except ValueError:  # not base64, not even ASCII
        fits = False
    if not fits:
        raise Problem(400, f"Sec-WebSocket-Key must be {_KEY_BYTES} bytes in base64")
    return base64.b64encode(sha1(key.encode() + _ACCEPT_KEY).digest())


def _only(headers: Headers, field: bytes) -> str:
    """Returns the value of a field that may be given once, or an empty text."""
    found = [value for name, value in headers if name == field]
    if len(found) > 1:
        raise Problem(400, f"the field {field.decode()} is given {len(found)} times")
    return found[0].decode("latin-1") if found else ""
