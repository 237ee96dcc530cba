"""Subscriptions of this hub at other hubs: asked for, listed and ended by their owners.

`app` has the routes: the owner's below `/api/hub/upstreams`, and the callbacks that other hubs
ask and post to. Publishing what comes is the app's too, for it knows the users.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable

from ...core.clock import Clock
from ..guard.guard import Guard
from ..lazy import Lazy
from ..rights import Rights
from ..settings import HubSettings
from ..storage.storage import Storage
from ..workers.pool import Workers
from . import upstream as steps
from .asked import check_wish
from .callbacks import Callbacks
from .held import Held
from .keeper import Keeper
from .makers import make_client
from .register import Register
from .upstream import Lines, Status, Upstream, Wish
from .work import Work


class Upstreams:
    def __init__(
        self,
        storage: Storage,
        guard: Guard,
        workers: Workers,
        rights: Rights,
        settings: HubSettings,
        clock: Clock,
    ) -> None:
        self._guard = guard
        self._rights = rights
        self._clock = clock
        self._register = Register(storage)
        self._loaded: list[Held] = []
        self._client = Lazy(lambda: make_client(settings, guard, workers))
        keeper = Keeper(self._register, self._client.get, rights, settings, clock)
        self._work = Work(self._register, keeper, clock)
        self.callbacks = Callbacks(self._register, self._work, clock)

    async def start(self) -> None:
        """Takes up what is stored: its callbacks are answered from here on."""
        self._loaded = await self._register.load()

    def begin(self) -> None:
        """Goes on with what is stored, first with what fell due meanwhile.

        To be called when callbacks can be reached: hubs ask back at once.
        """
        loaded, self._loaded = self._loaded, []
        for held in loaded:
            if self._rights.refuse_owner(held.upstream.owner):
                self._work.end_soon(held)
            else:
                self._work.serve(held)

    async def stop(self) -> None:
        await self._work.stop()
        if self._client.made is not None:
            await self._client.made.close()

    def all(self) -> list[Upstream]:
        return [held.upstream for held in self._register.all()]

    def get(self, vhost: str, name: str) -> Upstream | None:
        held = self._register.named(vhost, name)
        return None if held is None else held.upstream

    async def put(self, vhost: str, name: str, owner: str, wish: Wish, lines: Lines) -> bool:
        """Makes or changes one; True for a new one. Stored when it returns, subscribed soon.

        `lines` hold what the owner gave of secrets. Asking for what there is does nothing, unless
        it has failed or was denied: then it is tried at once. The caller has checked the owner's
        rights. Raises `BadRequest`, `CallbackRefused` and `StorageFailed`.
        """
        check_wish(wish, lines, self._guard)
        async with self._work.turn:
            return await self._put(vhost, name, owner, wish, lines)

    async def _put(self, vhost: str, name: str, owner: str, wish: Wish, lines: Lines) -> bool:
        held = self._register.named(vhost, name)
        if held is None:
            new = Upstream(uuid.uuid4().hex, vhost, name, owner, wish, lines)
            self._work.serve(await self._register.add(new))
            return True
        if not _is_asked_already(held.upstream, owner, wish, lines):
            now_s = self._clock.wall_s()
            await self._work.change(held, lambda old: steps.changed(old, owner, wish, lines, now_s))
        return False

    async def remove(self, vhost: str, name: str) -> bool:
        """Over for its owner when it returns, and for its hub as soon as that can be told."""
        async with self._work.turn:
            held = self._register.named(vhost, name)
            if held is None:
                return False
            await self._work.end(held)
            return True

    def forget_vhost(self, vhost: str) -> None:
        """A virtual host was deleted: what is made later under its name gets nothing of this."""
        self._forget(lambda upstream: upstream.vhost == vhost)

    def forget_owner(self, owner: str) -> None:
        """A user was deleted: who is made later under the name is another."""
        self._forget(lambda upstream: upstream.owner == owner)

    def _forget(self, is_over: Callable[[Upstream], bool]) -> None:
        for held in self._register.all():
            if is_over(held.upstream):
                self._work.end_soon(held)


def _is_asked_already(upstream: Upstream, owner: str, wish: Wish, lines: Lines) -> bool:
    old = upstream.lines
    return (
        upstream.status not in (Status.FAILED, Status.DENIED)
        and (upstream.owner, upstream.wish) == (owner, wish)
        and (old.given_secret, old.authorization) == (lines.given_secret, lines.authorization)
    )
