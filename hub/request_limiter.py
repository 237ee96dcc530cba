"""Turns to send requests: so many at once, fewer for each target, fair between those who ask.

A turn is given to clients in rotation, and of one client to its targets in rotation. Who waits
for a target that has no turn left waits apart and holds up nobody.
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
    """On whose behalf a request is sent. `client` is empty for this hub itself; a stranger, who
    came without credentials, can't hold the turns that are kept for users."""

    client: str = ""
    is_stranger: bool = False


HUB = Requester()


class RoundRobin(Generic[Item]):
    """Items below paths: the parts of a path take turns, items of one path keep their order.

    All paths are of the same length.
    """

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
    """`total` at once, `per_target` for one target; `kept` of them are not for strangers."""

    def __init__(self, total: int, per_target: int, kept: int = 0) -> None:
        self._free = total
        self._free_for_strangers = total - kept
        self._per_target = per_target
        self._held: Counter[str] = Counter()
        self._ready: OrderedDict[bool, RoundRobin[_Waiter]] = OrderedDict(
            (is_stranger, RoundRobin()) for is_stranger in (False, True)
        )
        self._blocked: dict[str, RoundRobin[_Waiter]] = {}
        """By the target without a turn left that they wait for."""

    @contextlib.asynccontextmanager
    async def take(self, targets: Sequence[str], requester: Requester = HUB) -> AsyncIterator[None]:
        """A turn for all of the targets: where the request goes first, then what it shares with
        others, such as an address."""
        wish = _Waiter(requester, targets)
        self._ready[requester.is_stranger].add(wish.path, wish)
        self._grant()
        try:
            await wish.granted
            yield
        finally:
            if wish.granted.done() and not wish.granted.cancelled():
                self._give_back(wish)

    def _grant(self) -> None:
        while (wish := self._next()) is not None:
            full = self._full(wish)
            if wish.granted.done():
                pass  # it has given up
            elif full is not None:
                self._blocked.setdefault(full, RoundRobin()).add(wish.path, wish)
            else:
                self._count(wish, 1)
                wish.granted.set_result(None)
            self._wake(wish.targets)

    def _next(self) -> _Waiter | None:
        """Users and strangers alternate while both wait and both may."""
        for is_stranger, waiting in self._ready.items():
            if waiting and self._free and (self._free_for_strangers or not is_stranger):
                self._ready.move_to_end(is_stranger)
                return waiting.pop()
        return None

    def _full(self, wish: _Waiter) -> str | None:
        is_full = (target for target in wish.targets if self._held[target] >= self._per_target)
        return next(is_full, None)

    def _wake(self, targets: Sequence[str]) -> None:
        """One of those that wait for each target is ready while that has a turn left: the next is
        woken when it is not any more, be it that it has its turn or waits for another target.

        Those that wait for what is shared come first, or one place with many would keep it."""
        for target in reversed(targets):
            blocked = self._blocked.get(target)
            if blocked is not None and self._held[target] < self._per_target:
                wish = blocked.pop()
                self._ready[wish.requester.is_stranger].add(wish.path, wish)
                if not blocked:
                    del self._blocked[target]

    def _give_back(self, wish: _Waiter) -> None:
        self._count(wish, -1)
        self._wake(wish.targets)
        self._grant()

    def _count(self, wish: _Waiter, change: int) -> None:
        self._free -= change
        if wish.requester.is_stranger:
            self._free_for_strangers -= change
        for target in wish.targets:
            self._held[target] += change
            if not self._held[target]:
                del self._held[target]
