"""A request of the management API."""

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
from ...access.admission import Admission
from ...context import Context
from ...problems import Problem
from ...requests.body import read_body
from .body import MAX_BYTES, Body
from .required_tags import RequiredTag, sees

NO_STORE = {"Cache-Control": "no-cache"}


@dataclass(frozen=True, slots=True)
class Call:
    """A request with its user. `names` are the variable parts of the path, decoded, from left to
    right; `right` is the tag that the user needs."""

    context: Context
    request: Request
    admission: Admission
    names: tuple[str, ...]
    right: RequiredTag

    @property
    def user(self) -> User:
        return self.admission.user

    def lasts_s(self) -> float:
        """Returns how long the user may have an answer to it; 0 if not any more."""
        return self.admission.lasts_s() if self.right.has(self.user) else 0.0

    @property
    def broker(self) -> Broker:
        return self.context.broker

    async def body(self, *, max_bytes: int = MAX_BYTES) -> Body:
        """Returns the body. Raises `Problem` 400 unless it is a JSON object, 413 past that size."""
        return Body(await self.raw_body(max_bytes))

    async def raw_body(self, max_bytes: int) -> bytes:
        """Returns the body as it came. Raises `Problem` 413 past that size."""
        unfinished = self.context.unfinished
        raw = await read_body(self.request.receive, max_bytes, unfinished, self.user.name)
        self.still_permitted()
        return raw

    def still_permitted(self) -> None:
        """Raises `Problem` 403 if the user has lost the tag, or was deleted, while the request
        waited; called after each wait."""
        self.right.require(self.user)

    def vhost(self, name: str) -> VirtualHost:
        """Returns the virtual host of this name; raises `ChannelError` 404."""
        found = self.broker.vhosts.get(name)
        if found is None:
            raise not_found(f"no vhost '{name}'")
        return found

    def visible_vhost(self, name: str) -> VirtualHost:
        """Returns the virtual host of this name; raises `ChannelError` 404, or 403 if the user may
        not see it."""
        found = self.vhost(name)
        if not sees(self.user, name):
            raise self._refused(name)
        return found

    def own_vhost(self, name: str) -> VirtualHost:
        """Returns the virtual host of this name; raises `ChannelError` 404, or 403 if the user has
        no permissions there, not even empty ones."""
        found = self.vhost(name)
        if not self.user.may_enter(name):
            raise self._refused(name)
        return found

    def _refused(self, vhost: str) -> Exception:
        return access_refused(f"access to vhost '{vhost}' refused for user '{self.user.name}'")

    async def stored(self) -> None:
        """Returns when all changes up to now are stored.

        Raises `Problem` 507 if the disk is full: they are in force until the process ends.
        """
        store = self.broker.store
        commit = store.barrier()
        while commit > store.progress.committed:
            if commit <= store.progress.refused:
                raise Problem(
                    507,
                    "applied, but not durable because the disk is full: a restart will revert it",
                )
            await self._next_commit()

    async def _next_commit(self) -> None:
        committed = asyncio.Event()
        self.broker.commits.on_next(committed.set)
        await committed.wait()

    async def done(self, *, is_new: bool = False) -> Response:
        """Returns the response to a change once it is stored: 201 for something new, else 204."""
        await self.stored()
        return Response(status_code=201 if is_new else 204)


class DocumentResponse(JSONResponse):
    """A response with its document."""

    def __init__(self, document: Any) -> None:
        super().__init__(document, headers=NO_STORE)
        self.document = document


def answer(found: Any) -> Response:
    return DocumentResponse(found)
