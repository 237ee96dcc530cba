"""Limits requests that are sent at once, in all and for each target, fair between clients.

Clients take turns, and of one client its targets. A request for a target that is at its limit does
not delay the others.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Requester:
    """The client on whose behalf a request is sent, "" for this hub. Anonymous clients can't take
    the turns that are reserved for users."""

    client: str = ""
    is_anonymous: bool = False


HUB = Requester()


class RoundRobin(Generic[Item]):
    """Items below paths of the same length: the parts of a path take turns, items of one path keep
    their order."""

    def __init__(self) -> None:
        self._parts: OrderedDict[str, RoundRobin[Item] | deque[Item]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, path: Sequence[str], item: Item) -> None:
        name, *rest = path
        part = self._parts.get(name)
        if part is None:
            part = self._parts[name] = RoundRobin() if rest else deque()
        if isinstance(part, deque):
            part.append(item)
        else:
            part.add(rest, item)

    def pop(self) -> Item:
        name, part = next(iter(self._parts.items()))
        item = part.popleft() if isinstance(part, deque) else part.pop()
        if part:
            self._parts.move_to_end(name)
        else:
            del self._parts[name]
        return item


class _Waiter:
    __slots__ = ("granted", "path", "requester", "targets")

    def __init__(self, requester: Requester, targets: Sequence[str]) -> None:
        self.requester = requester
        self.targets = targets
        self.path = (requester.client, targets[0])
        self.granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class RequestLimiter:
    """Limits requests that are sent at once: to `total`, and to `per_target` for one target;
    `reserved` of them are for users."""

    def __init__(self, total: int, per_target: int, reserved: int = 0) -> None:
        self._free = total
        self._free_for_anonymous = total - reserved
        self._per_target = per_target
        self._running: Counter[str] = Counter()
        self._ready: OrderedDict[bool, RoundRobin[_Waiter]] = OrderedDict(
            (is_anonymous, RoundRobin()) for is_anonymous in (False, True)
        )
        self._blocked: dict[str, RoundRobin[_Waiter]] = {}
        """The waiting requests by the target that is at its limit."""

    @contextlib.asynccontextmanager
    async def take(self, targets: Sequence[str], requester: Requester = HUB) -> AsyncIterator[None]:
        """Waits for a turn for all targets: first the receiver of the request, then what it shares
        with others, such as an address."""
        waiter = _Waiter(requester, targets)
        self._ready[requester.is_anonymous].add(waiter.path, waiter)
        self._grant()
        try:
            await waiter.granted
            yield
        finally:
            if waiter.granted.done() and not waiter.granted.cancelled():
                self._release(waiter)

    def _grant(self) -> None:
        while (waiter := self._next()) is not None:
            full = self._full(waiter)
            if waiter.granted.done():
                pass  # cancelled
            elif full is not None:
                self._blocked.setdefault(full, RoundRobin()).add(waiter.path, waiter)
            else:
                self._count(waiter, 1)
                waiter.granted.set_result(None)
            self._wake(waiter.targets)

    def _next(self) -> _Waiter | None:
        """Returns the next request; users and anonymous clients alternate."""
        for is_anonymous, waiting in self._ready.items():
            if waiting and self._free and (self._free_for_anonymous or not is_anonymous):
                self._ready.move_to_end(is_anonymous)
                return waiting.pop()
        return None

    def _full(self, waiter: _Waiter) -> str | None:
        is_full = (target for target in waiter.targets if self._running[target] >= self._per_target)
        return next(is_full, None)

    def _wake(self, targets: Sequence[str]) -> None:
        """Moves one request to `_ready` for each target below its limit; the next one follows when
        that has its turn or waits for another target.

        Shared targets come first, or one receiver with many requests would keep them."""
        for target in reversed(targets):
            blocked = self._blocked.get(target)
            if blocked is not None and self._running[target] < self._per_target:
                waiter = blocked.pop()
                self._ready[waiter.requester.is_anonymous].add(waiter.path, waiter)
                if not blocked:
                    del self._blocked[target]

    def _release(self, waiter: _Waiter) -> None:
        self._count(waiter, -1)
        self._wake(waiter.targets)
        self._grant()

    def _count(self, waiter: _Waiter, change: int) -> None:
        self._free -= change
        if waiter.requester.is_anonymous:
            self._free_for_anonymous -= change
        for target in waiter.targets:
            self._running[target] += change
            if not self._running[target]:
                del self._running[target]
