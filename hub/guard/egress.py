"""Connects through an HTTP proxy (CONNECT, RFC 9110 9.3.6) if the operator sets one.

The proxy, for example smokescreen, may refuse targets too; the hub's guard has refused its own
before. TLS is between the hub and the target.
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
"""The longest head of a proxy's answer."""


def make_dialler(settings: HubSettings, guard: Guard, purpose: Purpose) -> Dialler:
    """Returns a dialler, through the proxy of the setting egress_proxy if there is one."""
    if not settings.egress_proxy:
        return Dialler(guard, settings.connect_timeout_s, purpose)
    return ProxyDialler(guard, settings.connect_timeout_s, purpose, settings.egress_proxy)


class ProxyDialler(Dialler):
    """Connects through `proxy`, a URL with host and port; its host may be a name."""

    def __init__(
        self, guard: Guard, connect_timeout_s: float, purpose: Purpose, proxy: str
    ) -> None:
        super().__init__(guard, connect_timeout_s, purpose)
        parts = urlsplit(proxy)
        self._host, self._port = parts.hostname or "", parts.port or 80

    async def connect(self, host: str, port: int) -> socket.socket:
        """Returns a connected socket. Raises as the base, `OSError` too if the proxy refuses."""
        await self._guard.resolve(host, port, self._purpose)
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                return await self._through(f"[{host}]" if ":" in host else host, port)
        except TimeoutError as error:
            limit = f"{self._connect_timeout_s:g} s"
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
    """Reads the head of the answer and returns its status; what follows is the target's.

    The target sends nothing before the client does. Raises `OSError` for any other answer.
    """
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
