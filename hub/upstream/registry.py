"""All upstreams, by name and by the tokens of their callbacks; changes are stored first."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..storage.storage import Storage
from .state import UpstreamState
from .upstream import Upstream, UpstreamStatus

if TYPE_CHECKING:
    from .repository import UpstreamRepository

Step = Callable[[Upstream], Upstream]


class UpstreamRegistry:
    """Finds upstreams, and changes the row and the state of one together."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._by_name: dict[tuple[str, str], UpstreamState] = {}
        self._by_token: dict[str, UpstreamState] = {}
        self._by_id: dict[str, UpstreamState] = {}

    async def load(self) -> list[UpstreamState]:
        """Reads and returns all that are stored."""
        if self._storage.is_empty():
            return []
        for upstream in await (await self._repository()).all():
            self._show(UpstreamState(upstream), upstream)
        return list(self._by_id.values())

    def named(self, vhost: str, name: str) -> UpstreamState | None:
        """Returns the upstream of this name; None for one that is ending, because its name is free
        again."""
        return self._by_name.get((vhost, name))

    def all(self) -> list[UpstreamState]:
        """Returns those that are not ending."""
        return list(self._by_name.values())

    def with_token(self, token: str) -> UpstreamState | None:
        """Returns the upstream with a lease of this token."""
        return self._by_token.get(token)

    async def add(self, upstream: Upstream) -> UpstreamState:
        """Stores a new one. Raises `StorageFailed`."""
        await (await self._repository()).put(upstream)
        state = UpstreamState(upstream)
        self._show(state, upstream)
        return state

    async def step(self, state: UpstreamState, step: Step) -> None:
        """Applies the step, once it is stored. Raises `StorageFailed`, with nothing changed."""
        async with state.lock:
            new = step(state.upstream)
            if state.is_over or new == state.upstream:
                return
            await (await self._repository()).put(new)
            self._hide(state)
            self._show(state, new)

    async def drop(self, state: UpstreamState) -> None:
        """Deletes an upstream. Raises `StorageFailed`."""
        async with state.lock:
            await (await self._repository()).delete(state.upstream.id)
            state.is_over = True
            self._hide(state)

    def _show(self, state: UpstreamState, upstream: Upstream) -> None:
        state.upstream = upstream
        self._by_id[upstream.id] = state
        if upstream.status is not UpstreamStatus.ENDING:
            self._by_name[upstream.vhost, upstream.name] = state
        for lease in upstream.leases.all():
            self._by_token[lease.token] = state

    def _hide(self, state: UpstreamState) -> None:
        old = state.upstream
        self._by_id.pop(old.id, None)
        if self._by_name.get((old.vhost, old.name)) is state:
            del self._by_name[old.vhost, old.name]
        for lease in old.leases.all():
            self._by_token.pop(lease.token, None)

    async def _repository(self) -> UpstreamRepository:
        database = await self._storage.database()
        from .repository import UpstreamRepository

        return UpstreamRepository(database, self._storage.sealer)
