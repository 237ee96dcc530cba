"""Lookups of names: a limit for each purpose, and one query for all who wait for a name."""

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
"""Queries at a time for one purpose; each takes some 2 kB."""


class Purpose(Enum):
    """The use of an address. Names that never resolve delay their own purpose alone."""

    VERIFY = "verifications"
    FETCH = "fetches"
    DELIVER = "deliveries"


class _Lookup:
    """A query, and all who wait for it: one who stops waiting must not cancel `work`."""

    def __init__(self, now_s: float, within_s: float) -> None:
        self.deadline_s = now_s + within_s
        self._blames_until_s = now_s + within_s / 2
        self.is_name_to_blame = False
        """Whether a missing answer is the name's fault: not if the query began late."""
        self.work: asyncio.Task[list[Address]]

    def begin(self, now_s: float) -> None:
        """Notes that the query begins now."""
        self.is_name_to_blame = now_s <= self._blames_until_s


class Lookups:
    """Looks up names for one purpose; `answers` may be shared with other purposes."""

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
        self._slots = asyncio.Semaphore(at_once)
        self._resolver = Lazy(lambda: asyncio.to_thread(_make_resolver, servers, within_s))
        self._under_way: dict[str, _Lookup] = {}

    async def of(self, host: str) -> list[Address]:
        """Returns the addresses of a name, at least one.

        Raises `NoAddress`, and `NotResolved` if it is not the name's fault.
        """
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
        """Cancels all queries."""
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
            work.exception()  # retrieved, because nobody may wait for it any more

    async def _ask(self, host: str, lookup: _Lookup) -> list[Address]:
        """Queries a name; its slot is occupied until the query ends, in time or not."""
        loop = asyncio.get_running_loop()
        async with self._slots:
            if loop.time() >= lookup.deadline_s:
                raise self._busy()
            lookup.begin(loop.time())
            resolver = await self._resolver.get()
            while True:
                try:
                    addresses, ttl_s = await resolver.ask(host)
                except NoReply:
                    # c-ares waits as long as its servers usually need, which may be short.
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
    """Makes the resolver, in a thread: the imports take some 30 ms."""
    from .resolver import Resolver

    return Resolver(servers, within_s)
