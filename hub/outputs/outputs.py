"""Outputs: defined, changed, removed, and found by name."""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from ...core.clock import Clock
from ...core.errors import WarrenError, access_refused, not_found
from ..engine.port import Engine
from ..errors import BadRequest, HubError, SourceMissing
from ..feeds.feeds import Feeds
from ..keyed_locks import KeyedLocks
from ..lazy import Lazy
from ..owner_rights import SubscriberRights
from ..storage.storage import Storage
from ..tasks import Tasks
from ..workers.pool import Workers
from .contents import OutputContents
from .definition import NAME, Definition, OutputSource
from .output import Output, OutputKey, OutputToken
from .running import ActiveOutputs
from .sources import is_bound, missing, refusals
from .tokens import OutputTokens

if TYPE_CHECKING:
    from .repository import OutputRepository

OUTPUTS_OF_OWNER = 500
"""Each has a queue, a consumer and a copy of its items."""
REMOVED_KNOWN_S = 365 * 86_400
"""How long the documents of a removed output are answered with 410."""

log = logging.getLogger(__name__)


class NotYourOutput(HubError):
    """The output is another user's."""

    status = 403
    title = "Not the owner"


class NameTaken(HubError):
    """A feed has the name."""

    status = 409
    title = "Name taken"


class Outputs:
    """All outputs, in memory and in the database.

    `changed` is called with an output after a change of what its documents have, and
    `readers_changed` after one of who may read them; both after its removal.
    """

    def __init__(
        self,
        storage: Storage,
        engine: Engine,
        workers: Workers,
        rights: SubscriberRights,
        clock: Clock,
        feeds: Feeds,
        changed: Callable[[OutputKey], None],
        readers_changed: Callable[[OutputKey], None],
    ) -> None:
        self._storage = storage
        self._engine = engine
        self._rights = rights
        self._clock = clock
        self._feeds = feeds
        self._changed = changed
        self._readers_changed = readers_changed
        self._rows: Lazy[OutputRepository] = Lazy(self._open)
        self._contents = OutputContents(feeds.items, self._rows.get)
        self._locks: KeyedLocks[OutputKey] = KeyedLocks()
        self._running = ActiveOutputs(
            engine, workers, rights, clock, self._rows.get, self._contents, feeds.items,
            self._locks, changed,
        )  # fmt: skip
        self._removed: set[OutputKey] = set()
        self._tasks = Tasks()
        self.tokens = OutputTokens(self._rows.get, clock)

    async def start(self) -> None:
        """Goes on collecting for all outputs, and ends what was being removed."""
        if self._storage.is_empty():
            return
        await self.tokens.load()
        vhosts = self._engine.vhosts()
        for output in await (await self._rows.get()).all():
            if output.removed_at is not None:
                await self._delete_contents(output)
            elif self._rights.owner_refusal(output.owner) or output.key.vhost not in vhosts:
                await self._remove(output)
            else:
                await self._running.begin(output)

    async def stop(self) -> None:
        """Ends collecting; messages wait in the queues."""
        await self._tasks.stop()
        await self._running.stop()

    def get(self, key: OutputKey) -> Output | None:
        return self._running.get(key)

    def all(self) -> list[Output]:
        """Returns all outputs, sorted by name."""
        return sorted(self._running.all(), key=lambda one: (one.key.name, one.key.vhost))

    def is_removed(self, key: OutputKey) -> bool:
        """Returns whether there was an output of this name."""
        return key in self._removed

    async def note_removed(self, key: OutputKey) -> None:
        """Stores that there was a feed of this name, unless there is an output."""
        async with self._locks.of(key):
            if self.get(key) is None:
                now_s, gone = self._clock.wall_s(), Definition((OutputSource(feed=key.name),))
                output = Output(key, "", gone, now_s, now_s, removed_at=now_s)
                await (await self._rows.get()).put(output)
                self._removed.add(key)

    def notice(self, key: OutputKey) -> str:
        """Returns why messages wait, or why the last one was dropped that could not be read; "" if
        none does or was."""
        return self._running.notice(key)

    async def problems(self, output: Output) -> dict[str, str]:
        """Returns why sources bring nothing now, by member of the definition."""
        vhost, definition = output.key.vhost, output.definition
        found = {
            member: reason
            for member, reason in refusals(self._rights, output.owner, vhost, definition)
            if not is_bound(output, member)  # else it is soon unbound
        }
        for number, source in enumerate(definition.sources):
            member = f"sources[{number}]"
            reason = await missing(self._engine, self._feeds, vhost, source)
            if reason is None and source.stream is None and not is_bound(output, member):
                reason = "it is being bound"
            if reason is not None:
                found.setdefault(member, reason)
        return found

    async def put(
        self, key: OutputKey, user: str, definition: Definition, *, is_administrator: bool = False
    ) -> bool:
        """Creates or changes an output, durably when it returns; True for a new one.

        Its owner is who made it. Raises `BadRequest`, `NotYourOutput`, `SourceMissing`,
        `ChannelError` 403, and `StorageFailed`.
        """
        if not NAME.fullmatch(key.name):
            raise BadRequest("is invalid", field="name", value=key.name, limit=NAME.pattern)
        async with AsyncExitStack() as locks:
            await locks.enter_async_context(self._locks.of(key))
            before = self.get(key)
            if before is None:
                await locks.enter_async_context(self._feeds.registry.additions)
                self._require_room(key, user)
            elif before.owner != user and not is_administrator:
                raise NotYourOutput(
                    f"{key} belongs to another user; choose another name",
                    field="name", value=key.name,
                )  # fmt: skip
            now_s = self._clock.wall_s()
            made = before or Output(key, user, definition, now_s, now_s)
            output = replace(made, definition=definition, changed_at=now_s)
            await self._require_sources(output)
            await self._tasks.complete(self._put(output))
        return before is None

    async def remove(self, output: Output) -> None:
        """Removes an output with its items and tokens, durably when it returns. Raises
        `StorageFailed`."""
        async with self._locks.of(output.key):
            if self.get(output.key) is not None:
                await self._tasks.complete(self._remove(output))

    async def make_token(self, output: Output, name: str) -> tuple[OutputToken, str]:
        """Makes a token, as `OutputTokens.make`. Raises `ChannelError` 404 for an output that was
        removed, also if there is another one of its name."""
        async with self._locks.of(output.key):
            found = self.get(output.key)
            if found is None or found.made_at != output.made_at:
                raise not_found(f"{output.key} was removed")
            return await self.tokens.make(output.key, name)

    async def revoke(self, token: OutputToken) -> None:
        """Revokes a token, durably when it returns. After `StorageFailed` it is still valid."""
        await self.tokens.revoke(token)
        self._readers_changed(token.output)

    def forget_vhost(self, vhost: str) -> None:
        """Removes the outputs of a deleted virtual host, soon."""
        self._forget([one for one in self.all() if one.key.vhost == vhost])

    def forget_owner(self, owner: str) -> None:
        """Removes the outputs of a deleted user, soon."""
        self._forget([one for one in self.all() if one.owner == owner])

    def _forget(self, outputs: list[Output]) -> None:
        for output in outputs:
            self._tasks.own(self._logged(self.remove(output), output.key))

    async def _logged(self, work: Awaitable[None], key: OutputKey) -> None:
        try:
            await work
        except WarrenError as error:
            log.error("removing %s failed: %s", key, error)

    async def _put(self, output: Output) -> None:
        await self._running.attach(output)
        self._removed.discard(output.key)
        self._changed(output.key)
        self._readers_changed(output.key)

    async def _remove(self, output: Output) -> None:
        output = replace(output, removed_at=self._clock.wall_s())
        await (await self._rows.get()).put(output)
        await self._running.end(output)
        self.tokens.forget(output.key)
        await self._delete_contents(output)
        self._changed(output.key)
        self._readers_changed(output.key)

    async def _delete_contents(self, output: Output) -> None:
        """Deletes what is left of a removed output; its name is known for some time."""
        assert output.removed_at is not None
        rows = await self._rows.get()
        if output.owner:
            await self._running.delete_queue(output)
            await self._contents.drop(output.key)
            await rows.forget_contents(output.key)
            await rows.put(replace(output, bound=frozenset(), owner=""))
        if self._clock.wall_s() - output.removed_at > REMOVED_KNOWN_S:
            await rows.delete(output.key)
        else:
            self._removed.add(output.key)

    async def _require_sources(self, output: Output) -> None:
        vhost, definition = output.key.vhost, output.definition
        for member, refusal in refusals(self._rights, output.owner, vhost, definition):
            raise access_refused(f"{member}: {refusal}")
        for number, source in enumerate(definition.sources):
            reason = await missing(self._engine, self._feeds, vhost, source)
            if reason is not None:
                name = source.feed or source.exchange or source.stream
                raise SourceMissing(reason, field=f"sources[{number}]", value=name)

    def _require_room(self, key: OutputKey, user: str) -> None:
        feed = self._feeds.get(key.name)
        if feed is not None and feed.vhost == key.vhost:
            raise NameTaken("is the name of a feed; choose another", field="name", value=key.name)
        count = sum(one.owner == user for one in self._running.all())
        if count >= OUTPUTS_OF_OWNER:
            raise BadRequest(
                f"exceeds the limit: the user has {count} outputs", field="name",
                limit=f"{OUTPUTS_OF_OWNER} outputs",
            )  # fmt: skip

    async def _open(self) -> OutputRepository:
        database = await self._storage.database()
        await asyncio.to_thread(importlib.import_module, f"{__package__}.repository")
        from .repository import OutputRepository

        return OutputRepository(database)
