"""Asks name servers for addresses, with c-ares: no thread waits for a silent one.

Names in the system's hosts file and `localhost` are answered from there. Each question ends by
itself, whether anybody waits for it or not.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from aiodns import DNSResolver
from aiodns.error import (
    ARES_ECANCELLED,
    ARES_ECONNREFUSED,
    ARES_EDESTRUCTION,
    ARES_EFILE,
    ARES_ENOMEM,
    ARES_ENOTINITIALIZED,
    ARES_ETIMEOUT,
    DNSError,
)
from pycares import AddrInfoNode, AresError

from ..lazy import Lazy
from .addresses import Address, parse_address
from .failures import NoAddress, NoReply, NoServer

TRIES = 2
"""Of one question, to each server; the second one waits twice as long."""
QUESTIONS_PER_CHANNEL = 10_000
"""c-ares keeps what it was told without a bound: a new channel has forgotten it."""
_OURS = frozenset(
    (
        ARES_ECANCELLED, ARES_ECONNREFUSED, ARES_EDESTRUCTION, ARES_EFILE, ARES_ENOMEM,
        ARES_ENOTINITIALIZED,
    )
)  # fmt: skip


@dataclass(slots=True)
class _Channel:
    resolver: DNSResolver
    queries: int = 0
    pending: int = 0


class Resolver:
    """`servers` are `ADDRESS:PORT`, empty for the system's; a question to one of them ends after
    `within_s`."""

    def __init__(self, servers: Sequence[str], within_s: float) -> None:
        self._servers = list(servers)
        self._timeout_s = within_s / (2**TRIES - 1)
        self._channel = Lazy(self._make)
        self._open: set[DNSResolver] = set()

    async def ask(self, host: str) -> tuple[list[Address], float]:
        """Its addresses, never none, in the order in which they should be tried, and for how many
        seconds they hold. Raises `NoAddress` and `NoServer`."""
        try:
            channel = await self._channel.get()
        except AresError as error:
            raise NoServer(str(error)) from error
        channel.queries += 1
        channel.pending += 1
        if channel.queries == QUESTIONS_PER_CHANNEL:
            self._channel = Lazy(self._make)
        try:
            found = await channel.resolver.getaddrinfo(host, type=socket.SOCK_STREAM)
        except DNSError as error:
            raise _failure(error) from error
        finally:
            channel.pending -= 1
            if channel.queries >= QUESTIONS_PER_CHANNEL and not channel.pending:
                await self._close(channel.resolver)
        if not found.nodes:
            raise NoAddress("no addresses")
        return [_address(node) for node in found.nodes], min(node.ttl for node in found.nodes)

    async def close(self) -> None:
        """Ends what is still asked, which fails with `NoServer`."""
        for resolver in list(self._open):
            await self._close(resolver)

    async def _make(self) -> _Channel:
        """In a thread, for it reads files, and the first question the hosts file."""
        loop = asyncio.get_running_loop()
        resolver = await asyncio.to_thread(self._opened, loop)
        self._open.add(resolver)
        return _Channel(resolver)

    def _opened(self, loop: asyncio.AbstractEventLoop) -> DNSResolver:
        resolver = DNSResolver(self._servers, loop, timeout=self._timeout_s, tries=TRIES)
        resolver.getaddrinfo("localhost")
        return resolver

    async def _close(self, resolver: DNSResolver) -> None:
        if resolver in self._open:
            self._open.remove(resolver)
            await resolver.close()


def _failure(error: DNSError) -> Exception:
    code, text = error.args
    if code in _OURS:
        return NoServer(text)
    return NoReply(text) if code == ARES_ETIMEOUT else NoAddress(text)


def _address(node: AddrInfoNode) -> Address:
    return parse_address(node.addr[0].decode())
