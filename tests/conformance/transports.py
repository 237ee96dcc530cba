"""The raw client over every transport: TLS, WebSocket, and through a proxy."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

from tests.support.proxy import v2
from tests.support.websocket import BINARY, CLOSE, client_frame

from . import raw
from .raw import Disconnected

NEAR = v2((("127.0.0.1", 50_000), ("127.0.0.1", 5672)))


@dataclass
class TlsClient(raw.Client):
    """A client over TLS."""

    context: ssl.SSLContext | None = None
    host: str = "localhost"

    def __post_init__(self) -> None:
        super().__post_init__()
        assert self.context is not None
        self.socket = self.context.wrap_socket(self.socket, server_hostname=self.host)


@dataclass
class ProxiedClient(raw.Client):
    """A client that sends a proxy's header first."""

    header: bytes = NEAR

    def __post_init__(self) -> None:
        super().__post_init__()
        self.send(self.header)


@dataclass
class WebSocketClient(raw.Client):
    """A client over WebSocket: it sends a message for each call, and expects one AMQP frame a
    message."""

    path: str = "/ws/amqp"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._plain = False
        self._messages = bytearray()
        self.close_code = 0
        fields = (
            f"GET {self.path} HTTP/1.1", "Host: localhost", "Connection: Upgrade",
            "Upgrade: websocket", "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol: amqp",
        )  # fmt: skip
        self.socket.sendall("\r\n".join(fields).encode() + b"\r\n\r\n")
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += self._octets(1)
        assert head.startswith(b"HTTP/1.1 101 "), head

    def send(self, data: bytes) -> None:
        super().send(client_frame(BINARY, data))

    def read_bytes(self, size: int) -> bytes:
        """Returns bytes of messages, which must end at the end of AMQP frames."""
        while len(self._messages) < size:
            self._messages += self._message()
        data = bytes(self._messages[:size])
        del self._messages[:size]
        return data

    def _message(self) -> bytes:
        first, size = self._octets(2)
        if size > 125:
            size = int.from_bytes(self._octets(2 if size == 126 else 8), "big")
        payload = self._octets(size)
        if first == 0x80 | CLOSE:
            self.close_code = int.from_bytes(payload[:2], "big")
            super().send(client_frame(CLOSE, payload))
            raise Disconnected(f"close {self.close_code}")
        assert first == 0x80 | BINARY
        whole = 8 + int.from_bytes(payload[3:7], "big")
        assert payload == b"AMQP\0\0\x09\x01" or len(payload) == whole
        return payload

    def _octets(self, size: int) -> bytes:
        return super().read_bytes(size)
