"""Accepts connections from proxies that send a PROXY header.

A listed proxy has to send the header; from any other client it is a wrong protocol header. Not a
byte behind the header is read with it, so that the event loop reads TLS or AMQP as from any other
socket.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Final

from ..wire.proxy import ProxyHeaderError, Relayed, missing_bytes, read_header
from .caller import Network, parsed_address

logger = logging.getLogger(__name__)

HEADER_S: Final = 10.0
"""Timeout of the whole header, and of the TLS handshake behind it."""
_REST_S: Final = 1.0
"""Pause after a failed accept: files or memory have run out."""

MakeProtocol = Callable[[Relayed | None], asyncio.Protocol]


class ProxyListener:
    """One listening socket; `make_protocol` makes the protocol of a connection."""

    def __init__(
        self,
        listening: socket.socket,
        proxies: Sequence[Network],
        make_protocol: MakeProtocol,
        tls: ssl.SSLContext | None,
    ) -> None:
        self._listening = listening
        self._proxies = proxies
        self._make_protocol = make_protocol
        self._tls = tls
        self._entering: set[asyncio.Task[None]] = set()
        self._accepting: asyncio.Task[None] | None = None

    def open(self) -> None:
        self._accepting = asyncio.create_task(self._accept())

    def close(self) -> None:
        """Stops accepting; connections stay."""
        if self._accepting is not None:
            self._accepting.cancel()
            self._accepting.add_done_callback(lambda _: self._listening.close())
        for task in self._entering:
            task.cancel()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, address = await loop.sock_accept(self._listening)
            except OSError as error:
                logger.error("a connection could not be accepted: %s", error)
                await asyncio.sleep(_REST_S)
                continue
            task = loop.create_task(self._enter(accepted, str(address[0])))
            self._entering.add(task)
            task.add_done_callback(self._entering.discard)

    async def _enter(self, accepted: socket.socket, address: str) -> None:
        try:
            relayed = await self._read_header(accepted) if self._is_proxy(address) else None
        except (ProxyHeaderError, EOFError, OSError) as error:
            reason = str(error) or f"no PROXY header within {HEADER_S:.0f} s"
            logger.warning("proxy connection %s: %s", address, reason)
            accepted.close()
            return
        except asyncio.CancelledError:
            accepted.close()
            raise
        await self._serve(accepted, relayed)

    async def _serve(self, accepted: socket.socket, relayed: Relayed | None) -> None:
        limit_s = None if self._tls is None else HEADER_S
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: self._make_protocol(relayed),
                accepted,
                ssl=self._tls,
                ssl_handshake_timeout=limit_s,
            )
        except OSError as error:  # disconnected, or the TLS handshake failed
            logger.debug("a connection could not be established: %s", error)

    def _is_proxy(self, address: str) -> bool:
        parsed = parsed_address(address)
        return parsed is not None and any(parsed in network for network in self._proxies)

    async def _read_header(self, accepted: socket.socket) -> Relayed | None:
        """Raises `ProxyHeaderError`, `EOFError`, or `TimeoutError`, which is an `OSError`."""
        loop, head = asyncio.get_running_loop(), b""
        async with asyncio.timeout(HEADER_S):
            while more := missing_bytes(head):
                data = await loop.sock_recv(accepted, more)
                if not data:
                    raise EOFError("it ended within its PROXY header")
                head += data
        return read_header(head)
