"""What other hubs ask and send, by the token of the callback."""

from __future__ import annotations

import logging
import random
from dataclasses import dataclass
from functools import partial

from ...core.clock import Clock
from . import upstream as steps
from .asked import MAX_LEASE_S
from .held import Held
from .register import Register
from .upstream import Line, Status, Upstream
from .work import Work

MAX_REASON_CHARACTERS = 500

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Receiving:
    """What content that comes to a callback belongs to."""

    upstream: Upstream
    line: Line
    held: Held


class Callbacks:
    def __init__(self, register: Register, work: Work, clock: Clock) -> None:
        self._register = register
        self._work = work
        self._clock = clock

    async def confirm(self, token: str, mode: str, topic: str, lease_s: int | None) -> bool:
        """Whether this hub has asked for just that and waits for the question (WebSub 5.3).

        Stored when it returns; raises `StorageFailed`, and then the hub must not be told yes.
        """
        held, line = self._find(token)
        if held is None or line is None or line.topic != topic:
            return False
        if mode == "unsubscribe":
            return await self._confirm_end(held, line)
        return mode == "subscribe" and await self._confirm_begin(held, line, lease_s)

    async def deny(self, token: str, topic: str, reason: str) -> bool:
        """The hub will not serve, or no more (WebSub 5.2); False for what it does not serve."""
        held, line = self._find(token)
        if held is None or line is None or line.topic != topic:
            return False
        # PostgreSQL stores no NUL, and a terminal obeys the other controls.
        said = "".join(filter(str.isprintable, reason[:MAX_REASON_CHARACTERS])).strip()
        reason = f"the hub {line.hub_url} has denied it: {said or 'no reason given'}"
        await self._register.step(held, partial(steps.denied, token=token, reason=reason))
        held.answered(token)
        return True

    def receiving(self, token: str) -> Receiving | None:
        """None for content that nobody waits for, or no more: 410 ends it at its hub."""
        held, line = self._find(token)
        if held is None or line is None or not line.expires_at:
            return None
        is_over = line.leave_at and line.leave_at <= self._clock.wall_s()
        return None if is_over else Receiving(held.upstream, line, held)

    async def refused(self, receiving: Receiving, reason: str) -> None:
        """Its owner may not write what came; shown until something is taken again."""
        log.warning("upstream '%s': %s", receiving.upstream.name, reason)
        await self._register.step(receiving.held, partial(steps.refused, reason=reason))

    async def accepted(self, receiving: Receiving) -> None:
        upstream = receiving.held.upstream
        if upstream.status is Status.FAILED and upstream.is_served(self._clock.wall_s()):
            await self._register.step(receiving.held, steps.accepted)

    def _find(self, token: str) -> tuple[Held | None, Line | None]:
        held = self._register.holding(token)
        return held, None if held is None else held.upstream.line(token)

    async def _confirm_begin(self, held: Held, line: Line, lease_s: int | None) -> bool:
        now_s, chance = self._clock.wall_s(), random.random()
        granted_s = min(max(lease_s or held.upstream.wish.lease_seconds, 1), MAX_LEASE_S)

        def step(old: Upstream) -> Upstream:
            is_pending = old.lines.pending == line
            return steps.confirmed(old, now_s, granted_s, chance) if is_pending else old

        await self._register.step(held, step)
        current = held.upstream.lines.current
        if line.expires_at or current is None or current.token != line.token:
            return False
        held.answered(line.token)
        self._work.leave_lines(held)
        return True

    async def _confirm_end(self, held: Held, line: Line) -> bool:
        if line not in held.upstream.lines.leaving or line.leave_at > self._clock.wall_s():
            return False
        await self._register.step(held, partial(steps.without, token=line.token))
        held.answered(line.token)
        return True
