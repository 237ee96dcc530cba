"""The dead letters of all virtual hosts: listed, replayed, dropped.

They stay in their queues, where AMQP clients can consume them too; each operation scans the queues
(`Engine.scan`).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from ..delivery.internal_headers import InternalHeaders
from ..engine.own import DEAD_QUEUE
from ..engine.port import Engine, UnackedMessage
from ..errors import NoSuchDeadLetter, NotReplayed
from ..subscriptions.active import ActiveSubscription
from .dead_letter import DeadLetter, read_dead_letter
from .filter import DeadLetterFilter
from .replay import Replays

SCAN_LIMIT = 100_000
"""Dead letters that are scanned in a virtual host, in some seconds."""

Visible = list[tuple[DeadLetter, UnackedMessage]]
Act = Callable[[DeadLetter], Awaitable[bool]]


@dataclass(slots=True)
class DeadLetterPage:
    """A page of dead letters without their bodies, and how many match in all; `is_complete` is
    False if only the oldest were scanned.

    `causes` counts those that match whatever the filter of reasons says. `oldest_at` is wall time.
    """

    dead_letters: list[DeadLetter] = field(default_factory=list)
    matching: int = 0
    visible: int = 0
    causes: Counter[str] = field(default_factory=Counter)
    oldest_at: float | None = None
    is_complete: bool = True

    def add(self, dead_letter: DeadLetter, first: int, size: int) -> None:
        """Counts one that matches, and keeps it if it is one of the page."""
        if first <= self.matching < first + size:
            self.dead_letters.append(dead_letter.without_body())
        self.matching += 1
        if dead_letter.dead_at is not None:
            self.oldest_at = min(dead_letter.dead_at, self.oldest_at or dead_letter.dead_at)


@dataclass(slots=True)
class BulkResult:
    """The result of a change of many dead letters: how many were processed, how many were skipped,
    and how many are left in all."""

    done: int = 0
    skipped: int = 0
    left: int = 0
    is_complete: bool = True


class DeadLetters:
    """Lists, replays and drops the dead letters of all virtual hosts. `active_of` finds a
    subscription by its id. Every method raises `ChannelError` 404 for an unknown virtual host."""

    def __init__(
        self,
        engine: Engine,
        active_of: Callable[[str], ActiveSubscription | None],
        internal_headers: InternalHeaders,
    ) -> None:
        self._engine = engine
        self._active_of = active_of
        self._internal_headers = internal_headers
        self._replays = Replays(engine, internal_headers)

    async def page(
        self, vhosts: Iterable[str], wanted: DeadLetterFilter, first: int, size: int
    ) -> DeadLetterPage:
        """Returns `size` dead letters from number `first` on (from 0), the oldest of each host
        first."""
        found = DeadLetterPage()
        for_any_reason = replace(wanted, reason=None)

        async def handle(visible: Visible) -> bool:
            for dead_letter, _ in visible:
                found.visible += 1
                if not for_any_reason.passes(dead_letter):
                    continue
                found.causes[dead_letter.cause] += 1
                if wanted.passes(dead_letter):
                    found.add(dead_letter, first, size)
            return True

        for vhost in vhosts:
            found.is_complete &= await self._scan(vhost, wanted, handle)
        return found

    async def ids(self, vhost: str) -> dict[tuple[str, str], str]:
        """Returns the ids of all dead letters by subscription and webhook-id."""
        found: dict[tuple[str, str], str] = {}

        async def handle(visible: Visible) -> bool:
            for one, _ in visible:
                found[one.subscription_id, one.webhook_id] = one.id
            return True

        await self._scan(vhost, DeadLetterFilter(), handle)
        return found

    async def get(self, vhost: str, dead_letter_id: str, owner: str | None) -> DeadLetter:
        """Returns a dead letter with its body. Raises `NoSuchDeadLetter`."""
        found: list[DeadLetter] = []

        async def keep(dead_letter: DeadLetter) -> bool:
            found.append(dead_letter)
            return False

        await self._one(vhost, dead_letter_id, owner, keep)
        return found[0]

    async def replay(self, vhosts: Iterable[str], wanted: DeadLetterFilter) -> BulkResult:
        """Publishes dead letters to the queues of their subscriptions, to be delivered as if they
        had not failed. Those whose subscription is over or paused are skipped."""

        async def replay(dead_letter: DeadLetter) -> bool:
            return await self._replays.publish(dead_letter) is None

        return await self._each(vhosts, wanted, replay)

    async def replay_one(self, vhost: str, dead_letter_id: str, owner: str | None) -> None:
        """Replays a dead letter; raises `NoSuchDeadLetter`, or `NotReplayed` with the reason."""
        reasons: list[str] = []

        async def replay(dead_letter: DeadLetter) -> bool:
            reason = await self._replays.publish(dead_letter)
            reasons.extend([] if reason is None else [reason])
            return reason is None

        await self._one(vhost, dead_letter_id, owner, replay)
        if reasons:
            raise NotReplayed(reasons[0], field="id", value=dead_letter_id)

    async def drop(self, vhosts: Iterable[str], wanted: DeadLetterFilter) -> BulkResult:
        return await self._each(vhosts, wanted, _always)

    async def drop_one(self, vhost: str, dead_letter_id: str, owner: str | None) -> None:
        """Drops a dead letter; raises `NoSuchDeadLetter`."""
        await self._one(vhost, dead_letter_id, owner, _always)

    async def _each(self, vhosts: Iterable[str], wanted: DeadLetterFilter, act: Act) -> BulkResult:
        """Calls `act` for all that pass the filter; removes those for which it returns True."""
        done = BulkResult()

        async def handle(visible: Visible) -> bool:
            meant = [one for one in visible if wanted.passes(one[0])]
            acked = await _act(meant, act)
            done.done += acked
            done.skipped += len(meant) - acked
            done.left += len(visible) - acked
            return True

        for vhost in vhosts:
            done.is_complete &= await self._scan(vhost, wanted, handle)
        return done

    async def _one(self, vhost: str, dead_letter_id: str, owner: str | None, act: Act) -> None:
        is_found = False

        async def handle(visible: Visible) -> bool:
            nonlocal is_found
            is_found = bool(visible)
            await _act(visible, act)
            return not is_found

        await self._scan(vhost, DeadLetterFilter(owner=owner), handle, dead_letter_id)
        if not is_found:
            reason = f"no dead letter '{dead_letter_id}' in vhost '{vhost}'"
            raise NoSuchDeadLetter(reason, field="id", value=dead_letter_id)

    async def _scan(
        self,
        vhost: str,
        wanted: DeadLetterFilter,
        handle: Callable[[Visible], Awaitable[bool]],
        only: str | None = None,
    ) -> bool:
        """Calls `handle` with the visible dead letters, or only that with the id; returns whether
        all were scanned."""

        async def read(chunk: Sequence[UnackedMessage]) -> bool:
            named = (one for one in chunk if only is None or str(one.sequence) == only)
            visible = [
                (await read_dead_letter(vhost, one, self._active_of, self._internal_headers), one)
                for one in named
            ]
            return await handle([one for one in visible if wanted.is_visible(one[0])])

        if await self._engine.queue(vhost, DEAD_QUEUE.name) is None:
            return True
        return await self._engine.scan(vhost, DEAD_QUEUE.name, read, limit=SCAN_LIMIT)


async def _act(visible: Visible, act: Act) -> int:
    results = await asyncio.gather(*(act(dead_letter) for dead_letter, _ in visible))
    for (_, delivery), is_done in zip(visible, results, strict=True):
        if is_done:
            delivery.ack()
    return sum(results)


async def _always(dead_letter: DeadLetter) -> bool:
    return True
