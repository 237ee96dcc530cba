"""All upstreams, by name and by the tokens of their callbacks; each step stored, then counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..storage.storage import Storage
from .held import Held
from .upstream import Status, Upstream

if TYPE_CHECKING:
    from .repository import UpstreamRepository

Step = Callable[[Upstream], Upstream]


class Register:
    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._by_name: dict[tuple[str, str], Held] = {}
        self._by_token: dict[str, Held] = {}
        self._by_id: dict[str, Held] = {}

    async def load(self) -> list[Held]:
        if self._storage.is_empty():
            return []
        for upstream in await (await self._repository()).all():
            self._show(Held(upstream), upstream)
        return list(self._by_id.values())

    def named(self, vhost: str, name: str) -> Held | None:
        """None for one that is ending too: its name is free."""
        return self._by_name.get((vhost, name))

    def all(self) -> list[Held]:
        """Without those that are ending."""
        return list(self._by_name.values())

    def holding(self, token: str) -> Held | None:
        return self._by_token.get(token)

    async def add(self, upstream: Upstream) -> Held:
        await (await self._repository()).put(upstream)
        held = Held(upstream)
        self._show(held, upstream)
        return held

    async def step(self, held: Held, step: Step) -> None:
        """Raises `StorageFailed`, and nothing has changed then."""
        async with held.lock:
            new = step(held.upstream)
            if held.is_over or new == held.upstream:
                return
            await (await self._repository()).put(new)
            self._hide(held)
            self._show(held, new)

    async def drop(self, held: Held) -> None:
        async with held.lock:
            await (await self._repository()).delete(held.upstream.id)
            held.is_over = True
            self._hide(held)

    def _show(self, held: Held, upstream: Upstream) -> None:
        held.upstream = upstream
        self._by_id[upstream.id] = held
        if upstream.status is not Status.ENDING:
            self._by_name[upstream.vhost, upstream.name] = held
        for line in upstream.lines.all():
            self._by_token[line.token] = held

    def _hide(self, held: Held) -> None:
        old = held.upstream
        self._by_id.pop(old.id, None)
        if self._by_name.get((old.vhost, old.name)) is held:
            del self._by_name[old.vhost, old.name]
        for line in old.lines.all():
            self._by_token.pop(line.token, None)

    async def _repository(self) -> UpstreamRepository:
        database = await self._storage.database()
        from .repository import UpstreamRepository

        return UpstreamRepository(database, self._storage.sealer)
