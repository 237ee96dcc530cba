"""The same bound for httpx: connections that give only so many bytes of an answer.

They also give them in small pieces, for h11 parses all that it holds, interim responses
included, before anything else on the loop has its turn.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from typing import Any

import httpcore
import httpx

from .port import HEAD_BYTES

_PIECE_BYTES = 4 * 1024  # at 25 bytes each, 160 interim responses: some milliseconds


class BoundedTransport(httpx.AsyncHTTPTransport):
    """One request a connection; an answer beyond `max_body_bytes` and a head is an error."""

    def __init__(self, max_body_bytes: int, ssl_context: ssl.SSLContext) -> None:
        # httpx has no public way to choose the network backend of its pool.
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=ssl_context,
            max_connections=None,  # the verifier's turns bound them; the default is 10
            # Pooled by address: kept, a connection could serve another name behind it.
            max_keepalive_connections=0,
            network_backend=_BoundedBackend(max_body_bytes + HEAD_BYTES),
        )


class _BoundedBackend(httpcore.AnyIOBackend):
    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        stream = await super().connect_tcp(host, port, timeout, local_address, socket_options)
        return _BoundedStream(stream, self._max_bytes)


class _BoundedStream(httpcore.AsyncNetworkStream):
    def __init__(self, stream: httpcore.AsyncNetworkStream, max_bytes: int) -> None:
        self._stream = stream
        self._max_bytes = max_bytes
        self._left_bytes = max_bytes

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self._left_bytes == 0:
            raise httpcore.ReadError(f"the answer is longer than {self._max_bytes} bytes")
        piece = min(max_bytes, _PIECE_BYTES, self._left_bytes)
        data = await self._stream.read(piece, timeout)
        self._left_bytes -= len(data)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.AsyncNetworkStream:
        stream = await self._stream.start_tls(ssl_context, server_hostname, timeout)
        return _BoundedStream(stream, self._left_bytes)

    def get_extra_info(self, info: str) -> Any:
        try:
            return self._stream.get_extra_info(info)
        except AttributeError as error:
            # anyio asks a transport that has none any more: the peer has closed at once.
            raise httpcore.ReadError("the connection was closed at once") from error
