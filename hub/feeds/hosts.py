"""Schedules due polls round-robin by host: a host with many feeds delays only its own."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque


class HostRoundRobin:
    """Begins at most `total` polls at once, `per_host` of them at one host. An entry is a feed's
    name."""

    def __init__(self, total: int, per_host: int) -> None:
        self._free = total
        self._per_host = per_host
        self._running: Counter[str] = Counter()
        self._waiting: dict[str, deque[str]] = {}
        self._ready: OrderedDict[str, None] = OrderedDict()
        """The hosts with waiting polls that are below their limit, whose turn it is first."""

    def add(self, host: str, name: str) -> None:
        """Adds a poll that is due."""
        self._waiting.setdefault(host, deque()).append(name)
        if self._running[host] < self._per_host:
            self._ready.setdefault(host)

    def take(self) -> tuple[str, str] | None:
        """Begins the next poll: returns its host and name, None if none may begin now."""
        if not self._free or not self._ready:
            return None
        host, _ = self._ready.popitem(last=False)
        waiting = self._waiting[host]
        name = waiting.popleft()
        self._free -= 1
        self._running[host] += 1
        if not waiting:
            del self._waiting[host]
        elif self._running[host] < self._per_host:
            self._ready[host] = None
        return host, name

    def done(self, host: str) -> None:
        """Ends a poll."""
        self._free += 1
        self._running[host] -= 1
        if not self._running[host]:
            del self._running[host]
        if host in self._waiting:
            self._ready.setdefault(host)
