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
from ..errors import NoSuchLetter, NotReplayed
from ..subscriptions.active import ActiveSubscription
from .filter import DeadLetterFilter
from .letter import DeadLetter, read_letter
from .replay import Replays

SCAN_LIMIT = 100_000
"""Letters looked at in a virtual host, which takes some seconds."""

Shown = list[tuple[DeadLetter, Taken]]
Act = Callable[[DeadLetter], Awaitable[bool]]


@dataclass(slots=True)
class DeadLetterPage:
    """A page of letters without their bodies, and how many match in all; `is_complete` is False
    where only the oldest were looked at."""

    letters: list[DeadLetter] = field(default_factory=list)
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
        self._live_of = active_of
        self._internal_headers = internal_headers
        self._replays = Replays(engine, internal_headers)

    async def page(
        self, vhosts: Iterable[str], wanted: DeadLetterFilter, first: int, size: int
    ) -> DeadLetterPage:
        """`size` letters from number `first` on (from 0), the oldest of each host first."""
        found = DeadLetterPage()

        async def look(shown: Shown) -> bool:
            for letter, _ in shown:
                found.visible += 1
                if wanted.passes(letter):
                    if first <= found.matching < first + size:
                        found.letters.append(letter.without_body())
                    found.matching += 1
            return True

        for vhost in vhosts:
            found.is_complete &= await self._scan(vhost, wanted, look)
        return found

    async def get(self, vhost: str, letter_id: str, owner: str | None) -> DeadLetter:
        """With its body. Raises `NoSuchLetter`."""
        found: list[DeadLetter] = []

        async def keep(letter: DeadLetter) -> bool:
            found.append(letter)
            return False

        await self._one(vhost, letter_id, owner, keep)
        return found[0]

    async def replay(self, vhosts: Iterable[str], wanted: DeadLetterFilter) -> BulkResult:
        """Gives letters back to the queues of their subscriptions, to be delivered as if they had
        never failed. Those whose subscription is over or paused are skipped."""

        async def replay(letter: DeadLetter) -> bool:
            return await self._replays.refuse(letter) is None

        return await self._each(vhosts, wanted, replay)

    async def replay_one(self, vhost: str, letter_id: str, owner: str | None) -> None:
        """Raises `NoSuchLetter`, or `NotReplayed` with the reason."""
        reasons: list[str] = []

        async def replay(letter: DeadLetter) -> bool:
            reason = await self._replays.refuse(letter)
            reasons.extend([] if reason is None else [reason])
            return reason is None

        await self._one(vhost, letter_id, owner, replay)
        if reasons:
            raise NotReplayed(reasons[0], field="id", value=letter_id)

    async def drop(self, vhosts: Iterable[str], wanted: DeadLetterFilter) -> BulkResult:
        return await self._each(vhosts, wanted, _agree)

    async def drop_one(self, vhost: str, letter_id: str, owner: str | None) -> None:
        """Raises `NoSuchLetter`."""
        await self._one(vhost, letter_id, owner, _agree)

    async def _each(self, vhosts: Iterable[str], wanted: DeadLetterFilter, act: Act) -> BulkResult:
        """Acts on all that pass, those of a piece at once; they go where `act` gives True."""
        done = BulkResult()

        async def look(shown: Shown) -> bool:
            meant = [one for one in shown if wanted.passes(one[0])]
            acked = await _act(meant, act)
            done.done += acked
            done.skipped += len(meant) - acked
            done.left += len(shown) - acked
            return True

        for vhost in vhosts:
            done.is_complete &= await self._scan(vhost, wanted, look)
        return done

    async def _one(self, vhost: str, letter_id: str, owner: str | None, act: Act) -> None:
        is_found = False

        async def look(shown: Shown) -> bool:
            nonlocal is_found
            is_found = bool(shown)
            await _act(shown, act)
            return not is_found

        await self._scan(vhost, DeadLetterFilter(owner=owner), look, letter_id)
        if not is_found:
            reason = f"no dead letter '{letter_id}' in vhost '{vhost}'"
            raise NoSuchLetter(reason, field="id", value=letter_id)

    async def _scan(
        self,
        vhost: str,
        wanted: DeadLetterFilter,
        look: Callable[[Shown], Awaitable[bool]],
        only: str | None = None,
    ) -> bool:
        """Shows what is visible, or only the one of that id; gives whether that was all."""

        async def read(piece: Sequence[Taken]) -> bool:
            named = (one for one in piece if only is None or str(one.sequence) == only)
            shown = [
                (await read_letter(vhost, one, self._live_of, self._internal_headers), one)
                for one in named
            ]
            return await look([one for one in shown if wanted.is_visible(one[0])])

        if await self._engine.queue(vhost, DEAD_QUEUE.name) is None:
            return True
        return await self._engine.scan(vhost, DEAD_QUEUE.name, read, limit=SCAN_LIMIT)


async def _act(shown: Shown, act: Act) -> int:
    results = await asyncio.gather(*(act(letter) for letter, _ in shown))
    for (_, delivery), is_done in zip(shown, results, strict=True):
        if is_done:
            delivery.ack()
    return sum(results)


async def _agree(letter: DeadLetter) -> bool:
    return True
