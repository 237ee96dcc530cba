"""Lookups of one purpose: a budget of their own, and one question for all who ask for a name at
the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING

from ..errors import NotResolved
from ..lazy import Lazy
from .address_cache import AddressCache
from .addresses import Address
from .failures import NoReply, NoServer

if TYPE_CHECKING:
    from .resolver import Resolver

AT_ONCE = 500
"""Questions under way for one purpose; each takes some 2 kB."""


class Purpose(Enum):
    """What an address is wanted for. Names that never resolve hold up their own purpose alone."""

    VERIFY = "verifications"
    FETCH = "fetches"
    DELIVER = "deliveries"


class _Lookup:
    """`work` is shared: whoever gives up waiting must not cancel it."""

    def __init__(self, now_s: float, within_s: float) -> None:
        self.deadline_s = now_s + within_s
        self._blames_until_s = now_s + within_s / 2
        self.is_name_to_blame = False
        """For an answer that does not come: a name that waited for its turn for most of the time
        was hardly asked."""
        self.work: asyncio.Task[list[Address]]

    def ask(self, now_s: float) -> None:
        """It is its turn."""
        self.is_name_to_blame = now_s <= self._blames_until_s


class Lookups:
    """`answers` may be shared with those of other purposes."""

    def __init__(
        self,
        purpose: Purpose,
        servers: Sequence[str],
        answers: AddressCache,
        within_s: float,
        at_once: int = AT_ONCE,
    ) -> None:
        self._purpose = purpose
        self._answers = answers
        self._within_s = within_s
        self._at_once = at_once
        self._limiter = asyncio.Semaphore(at_once)
        self._resolver = Lazy(lambda: asyncio.to_thread(_make_resolver, servers, within_s))
        self._under_way: dict[str, _Lookup] = {}

    async def of(self, host: str) -> list[Address]:
        """Never empty. Raises `NoAddress`, and `NotResolved` where that is not the name's fault."""
        known = self._answers.get(host, asyncio.get_running_loop().time())
        if known is not None:
            return known
        lookup = self._under_way.get(host) or self._begin(host)
        try:
            async with asyncio.timeout_at(lookup.deadline_s):
                return await asyncio.shield(lookup.work)
        except (TimeoutError, NoReply) as error:
            if lookup.is_name_to_blame:
                raise NoReply("does not resolve in time") from error
            raise self._busy() from error
        except NoServer as error:
            reason = f"no name server could be asked for its address: {error}"
            raise NotResolved(reason, field="host", value=host) from error

    async def close(self) -> None:
        for lookup in list(self._under_way.values()):
            lookup.work.cancel()
        if self._resolver.made is not None:
            await self._resolver.made.close()

    def _begin(self, host: str) -> _Lookup:
        loop = asyncio.get_running_loop()
        lookup = self._under_way[host] = _Lookup(loop.time(), self._within_s)
        lookup.work = loop.create_task(self._ask(host, lookup))
        lookup.work.add_done_callback(lambda work: self._done(host, work))
        return lookup

    def _done(self, host: str, work: asyncio.Task[list[Address]]) -> None:
        del self._under_way[host]
        if not work.cancelled():
            work.exception()  # maybe nobody waits for it any more

    async def _ask(self, host: str, lookup: _Lookup) -> list[Address]:
        """Holds its turn until the question has ended, in time or not."""
        loop = asyncio.get_running_loop()
        async with self._limiter:
            if loop.time() >= lookup.deadline_s:
                raise self._busy()
            lookup.ask(loop.time())
            resolver = await self._resolver.get()
            while True:
                try:
                    addresses, ttl_s = await resolver.ask(host)
                except NoReply:
                    # c-ares waits for as long as its servers usually take, which may be short.
                    if loop.time() >= lookup.deadline_s:
                        raise
                else:
                    self._answers.put(host, addresses, ttl_s, loop.time())
                    return addresses

    def _busy(self) -> NotResolved:
        reason = "too many names are looked up at once"
        limit = f"{self._at_once} for {self._purpose.value}"
        return NotResolved(reason, field="host", limit=limit)


def _make_resolver(servers: Sequence[str], within_s: float) -> Resolver:
    """In a thread, for what it imports takes some 30 ms."""
    from .resolver import Resolver

    return Resolver(servers, within_s)
