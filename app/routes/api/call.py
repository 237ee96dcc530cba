"""One request of the API: who asks, what the path names, and the answer."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ....core.auth import User
from ....core.broker import Broker
from ....core.errors import access_refused, not_found
from ....core.vhost import VirtualHost
from ...body import read_body
from ...context import Context
from ...problems import Problem
from .body import MAX_BYTES, Body
from .required_tags import RequiredTag, sees

NO_STORE = {"Cache-Control": "no-cache"}


@dataclass(frozen=True, slots=True)
class Call:
    """`names` are the variable parts of the path, decoded, from left to right; `right` is what the
    user needs."""

    context: Context
    request: Request
    user: User
    names: tuple[str, ...]
    right: RequiredTag

    @property
    def broker(self) -> Broker:
        return self.context.broker

    async def body(self) -> Body:
        """Raises `Problem` 400 for what is no JSON object, 413 past 1 MiB."""
        body = Body(await self._read_body())
        self.still_permitted()
        return body

    async def _read_body(self) -> bytes:
        unfinished = self.context.unfinished
        return await read_body(self.request.receive, MAX_BYTES, unfinished, self.user.name)

    def still_permitted(self) -> None:
        """To be asked after each wait: who was allowed to begin may have lost the right, or be
        gone. Raises `Problem` 403."""
        self.right.require(self.user)

    def vhost(self, name: str) -> VirtualHost:
        """Raises `ChannelError` 404."""
        found = self.broker.vhosts.get(name)
        if found is None:
            raise not_found(f"no vhost '{name}'")
        return found

    def visible_vhost(self, name: str) -> VirtualHost:
        """Raises `ChannelError` 404, or 403 if the user has no business there."""
        found = self.vhost(name)
        if not sees(self.user, name):
            raise self._refused(name)
        return found

    def own_vhost(self, name: str) -> VirtualHost:
        """Raises `ChannelError` 404, or 403 if the user has no permission there, not even an
        empty one."""
        found = self.vhost(name)
        if not self.user.may_enter(name):
            raise self._refused(name)
        return found

    def _refused(self, vhost: str) -> Exception:
        return access_refused(f"access to vhost '{vhost}' refused for user '{self.user.name}'")

    async def kept(self) -> None:
        """Returns when all changes up to now outlive the process.

        Raises `Problem` 507 if the disk does not take them: they are in force until the end of
        the process.
        """
        store = self.broker.store
        commit = store.barrier()
        while commit > store.committed:
            if commit <= store.refused:
                raise Problem(507, "done, but the disk is full: it will be undone by a restart")
            await self._next_commit()

    async def _next_commit(self) -> None:
        told = asyncio.Event()
        self.broker.on_commit(told.set)
        await told.wait()

    async def done(self, *, is_new: bool = False) -> Response:
        """The answer to a change, when it is kept: 201 for something new, else 204."""
        await self.kept()
        return Response(status_code=201 if is_new else 204)


def answer(found: Any) -> Response:
    return JSONResponse(found, headers=NO_STORE)
