"""The dead letters of all virtual hosts: listed, replayed, dropped.

They stay in their queues, where any AMQP client finds them too; each of these operations looks
through the queues (`Engine.scan`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field

from ..delivery.internal_headers import InternalHeaders
from ..engine.own import DEAD_QUEUE
from ..engine.port import Engine, Taken
from ..errors import NoSuchDeadLetter, NotReplayed
from ..subscriptions.active import ActiveSubscription
from .dead_letter import DeadLetter, read_dead_letter
from .filter import DeadLetterFilter
from .replay import Replays

SCAN_LIMIT = 100_000
"""Letters looked at in a virtual host, which takes some seconds."""

Visible = list[tuple[DeadLetter, Taken]]
Act = Callable[[DeadLetter], Awaitable[bool]]


@dataclass(slots=True)
class DeadLetterPage:
    """A page of letters without their bodies, and how many match in all; `is_complete` is False
    where only the oldest were looked at."""

    dead_letters: list[DeadLetter] = field(default_factory=list)
    matching: int = 0
    visible: int = 0
    is_complete: bool = True


@dataclass(slots=True)
class BulkResult:
    """How many letters it was done to, to how many of those that were meant it could not be, and
    how many are left, these included."""

    done: int = 0
    skipped: int = 0
    left: int = 0
    is_complete: bool = True


class DeadLetters:
    """`active_of` finds a subscription by its id. Every method raises `ChannelError` 404 for a
    virtual host that is not there."""

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
        """`size` letters from number `first` on (from 0), the oldest of each host first."""
        found = DeadLetterPage()

        async def handle(visible: Visible) -> bool:
            for dead_letter, _ in visible:
                found.visible += 1
                if wanted.passes(dead_letter):
                    if first <= found.matching < first + size:
                        found.dead_letters.append(dead_letter.without_body())
                    found.matching += 1
            return True

        for vhost in vhosts:
            found.is_complete &= await self._scan(vhost, wanted, handle)
        return found

    async def get(self, vhost: str, dead_letter_id: str, owner: str | None) -> DeadLetter:
        """With its body. Raises `NoSuchDeadLetter`."""
        found: list[DeadLetter] = []

        async def keep(dead_letter: DeadLetter) -> bool:
            found.append(dead_letter)
            return False

        await self._one(vhost, dead_letter_id, owner, keep)
        return found[0]

    async def replay(self, vhosts: Iterable[str], wanted: DeadLetterFilter) -> BulkResult:
        """Gives letters back to the queues of their subscriptions, to be delivered as if they had
        never failed. Those whose subscription is over or paused are skipped."""

        async def replay(dead_letter: DeadLetter) -> bool:
            return await self._replays.refuse(dead_letter) is None

        return await self._each(vhosts, wanted, replay)

    async def replay_one(self, vhost: str, dead_letter_id: str, owner: str | None) -> None:
        """Raises `NoSuchDeadLetter`, or `NotReplayed` with the reason."""
        reasons: list[str] = []

        async def replay(dead_letter: DeadLetter) -> bool:
            reason = await self._replays.refuse(dead_letter)
            reasons.extend([] if reason is None else [reason])
            return reason is None

        await self._one(vhost, dead_letter_id, owner, replay)
        if reasons:
            raise NotReplayed(reasons[0], field="id", value=dead_letter_id)

    async def drop(self, vhosts: Iterable[str], wanted: DeadLetterFilter) -> BulkResult:
        return await self._each(vhosts, wanted, _agree)

    async def drop_one(self, vhost: str, dead_letter_id: str, owner: str | None) -> None:
        """Raises `NoSuchDeadLetter`."""
        await self._one(vhost, dead_letter_id, owner, _agree)

    async def _each(self, vhosts: Iterable[str], wanted: DeadLetterFilter, act: Act) -> BulkResult:
        """Acts on all that pass, those of a piece at once; they go where `act` gives True."""
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
        """Shows what is visible, or only the one of that id; gives whether that was all."""

        async def read(chunk: Sequence[Taken]) -> bool:
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


async def _agree(dead_letter: DeadLetter) -> bool:
    return True
