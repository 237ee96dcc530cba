"""Asks the system's resolver for the addresses of names."""

from __future__ import annotations

import asyncio
import socket
from functools import partial
from typing import Any

AddressInfo = tuple[Any, ...]
"""As the socket module has it: the address is first in the last part."""


class Lookups:
    """One question for all who ask for a name at the same time: each takes a thread, for many
    seconds if the name's server is silent, and there are not many."""

    def __init__(self) -> None:
        self._under_way: dict[str, asyncio.Future[list[AddressInfo]]] = {}

    def of(self, host: str) -> asyncio.Future[list[AddressInfo]]:
        """Shared: whoever gives up waiting must not cancel it. Fails with `OSError`, or
        `UnicodeError` for what can't be a name."""
        lookup = self._under_way.get(host)
        if lookup is None:
            loop = asyncio.get_running_loop()
            asked = loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            lookup = self._under_way[host] = asyncio.ensure_future(asked)
            lookup.add_done_callback(partial(self._done, host))
        return lookup

    def _done(self, host: str, lookup: asyncio.Future[list[AddressInfo]]) -> None:
        del self._under_way[host]
        if not lookup.cancelled():
            lookup.exception()  # maybe nobody waits for it any more
