"""Queries name servers with c-ares, so that no thread waits for a silent one.

Names of the system's hosts file and `localhost` are resolved from it. Every query ends by itself,
whether anybody waits for it or not.
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
"""How often each server is queried for a name; the second try waits twice as long."""
QUERIES_PER_CHANNEL = 10_000
"""How many queries a channel is used for: c-ares caches answers without a limit."""
_NO_SERVER = frozenset(
    (
        ARES_ECANCELLED, ARES_ECONNREFUSED, ARES_EDESTRUCTION, ARES_EFILE, ARES_ENOMEM,
        ARES_ENOTINITIALIZED,
    )
)  # fmt: skip


@dataclass(slots=True)
class _Channel:
    """A c-ares channel, with its number of queries and of those that have not ended."""

    resolver: DNSResolver
    queries: int = 0
    pending: int = 0


class Resolver:
    """Queries `servers`, each an `ADDRESS:PORT`; none means those of the system.

    A query to one of them ends after `within_s`.
    """

    def __init__(self, servers: Sequence[str], within_s: float) -> None:
        self._servers = list(servers)
        self._timeout_s = within_s / (2**TRIES - 1)
        self._channel = Lazy(self._make)
        self._open: set[DNSResolver] = set()

    async def ask(self, host: str) -> tuple[list[Address], float]:
        """Returns the addresses of a name, at least one, and their time to live in seconds.

        They are in the order in which to try them. Raises `NoAddress` and `NoServer`.
        """
        try:
            channel = await self._channel.get()
        except AresError as error:
            raise NoServer(str(error)) from error
        channel.queries += 1
        channel.pending += 1
        if channel.queries == QUERIES_PER_CHANNEL:
            self._channel = Lazy(self._make)
        try:
            found = await channel.resolver.getaddrinfo(host, type=socket.SOCK_STREAM)
        except DNSError as error:
            raise _failure(error) from error
        finally:
            channel.pending -= 1
            if channel.queries >= QUERIES_PER_CHANNEL and not channel.pending:
                await self._close(channel.resolver)
        if not found.nodes:
            raise NoAddress("no addresses")
        return [_address(node) for node in found.nodes], min(node.ttl for node in found.nodes)

    async def close(self) -> None:
        """Ends all queries with `NoServer`."""
        for resolver in list(self._open):
            await self._close(resolver)

    async def _make(self) -> _Channel:
        """Opens a channel in a thread, because that and the first query read files."""
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
    if code in _NO_SERVER:
        return NoServer(text)
    return NoReply(text) if code == ARES_ETIMEOUT else NoAddress(text)


def _address(node: AddrInfoNode) -> Address:
    return parse_address(node.addr[0].decode())
