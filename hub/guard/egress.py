"""Dials through an HTTP proxy (CONNECT, RFC 9110 9.3.6) where an operator wants one way out.

The proxy, smokescreen for one, decides for itself whom it connects to; what the hub's own guard
refuses is not even asked for. TLS is spoken through it with the target.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from urllib.parse import urlsplit

from ..settings import HubSettings
from .dialler import Dialler
from .guard import Guard
from .lookups import Purpose

MAX_HEAD_BYTES = 16_384
"""Of the proxy's answer."""


def make_dialler(settings: HubSettings, guard: Guard, purpose: Purpose) -> Dialler:
    """As the setting egress_proxy wants it."""
    if not settings.egress_proxy:
        return Dialler(guard, settings.connect_timeout_s, purpose)
    return ProxyDialler(guard, settings.connect_timeout_s, purpose, settings.egress_proxy)


class ProxyDialler(Dialler):
    """`proxy` is a URL with host and port; its host may be a name."""

    def __init__(
        self, guard: Guard, connect_timeout_s: float, purpose: Purpose, proxy: str
    ) -> None:
        super().__init__(guard, connect_timeout_s, purpose)
        self._guarding = guard
        self._within_s = connect_timeout_s
        self._wanted_for = purpose
        parts = urlsplit(proxy)
        self._host, self._port = parts.hostname or "", parts.port or 80

    async def connect(self, host: str, port: int) -> socket.socket:
        """Raises as `Dialler.connect`, `OSError` also where the proxy refuses."""
        await self._guarding.resolve(host, port, self._wanted_for)
        try:
            async with asyncio.timeout(self._within_s):
                return await self._through(f"[{host}]" if ":" in host else host, port)
        except TimeoutError as error:
            limit = f"{self._within_s:g} s"
            reason = f"no connection to {host}:{port} through the egress proxy within {limit}"
            raise TimeoutError(reason) from error

    async def _through(self, host: str, port: int) -> socket.socket:
        loop = asyncio.get_running_loop()
        connected = await self._connect_to_proxy()
        try:
            target = f"{host}:{port}"
            request = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n"
            await loop.sock_sendall(connected, request.encode())
            status = await _read_status(connected)
            if not 200 <= status < 300:
                raise ConnectionRefusedError(f"the egress proxy answers {status} for {target}")
        except BaseException:
            connected.close()
            raise
        return connected

    async def _connect_to_proxy(self) -> socket.socket:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        failure: OSError | None = None
        for family, kind, protocol, _, address in found:
            connecting = socket.socket(family, kind, protocol)
            try:
                connecting.setblocking(False)
                with suppress(OSError):
                    connecting.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                await loop.sock_connect(connecting, address)
            except OSError as error:
                connecting.close()
                failure = error
            except BaseException:
                connecting.close()
                raise
            else:
                return connecting
        raise failure or OSError(f"the egress proxy {self._host} has no address")


async def _read_status(connected: socket.socket) -> int:
    """The status of the answer, whose head is read to its end: what follows is the target's, and
    says nothing before it is spoken to. Raises `OSError` for what is no such answer."""
    loop, head = asyncio.get_running_loop(), b""
    while not head.endswith(b"\r\n\r\n"):
        data = await loop.sock_recv(connected, MAX_HEAD_BYTES - len(head))
        if not data:
            raise ConnectionError("the egress proxy's answer is cut short or too long")
        head += data
        if b"\r\n\r\n" in head and not head.endswith(b"\r\n\r\n"):
            if head[9:10] == b"2":
                raise ConnectionError("the egress proxy's answer has a body")
            break
    line = head.split(b"\r\n", 1)[0].split(b" ")
    if len(line) < 2 or not line[0].startswith(b"HTTP/1.") or not line[1].isdigit():
        raise ConnectionError(f"the egress proxy answers {head[:60]!r}")
    return int(line[1])
