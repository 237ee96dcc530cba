"""Sends messages again whose delivery was attempted before.

A dead letter is replayed; a message that waits for a retry is tried now; any other one is posted
once more, from its kept request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from ..attempts.attempt import Attempt, AttemptFilter, AttemptOutcome, StoredAttempt
from ..attempts.log import AttemptLog
from ..deadletter.dead_letters import DeadLetters
from ..deadletter.filter import DeadLetterFilter
from ..delivery.direct_posts import DirectPosts
from ..errors import NotResent
from ..subscriptions.active import ActiveSubscription
from ..subscriptions.store import SubscriptionStore
from ..tasks import Tasks
from .waiting import PendingRetries

ATTEMPTS_MAX: Final = 10_000
"""Attempts whose messages are sent again by one request."""
POSTS_AT_ONCE: Final = 16

Key = tuple[str, str]
"""Subscription and webhook-id."""


class ResendMethod(StrEnum):
    REPLAYED = "replayed"
    """The dead letter is back in the queue of its subscription."""
    HASTENED = "hastened"
    """The message no longer waits for its retry."""
    SENT = "sent"
    """The message was posted once more."""


@dataclass(frozen=True, slots=True)
class Resent:
    way: ResendMethod
    attempt: Attempt | None = None
    """The attempt of a message that was posted."""


@dataclass(slots=True)
class ResendPlan:
    """The messages that would be sent again, by virtual host; `matching` counts messages."""

    matching: int = 0
    dead: dict[str, set[str]] = field(default_factory=dict)
    """Ids of dead letters."""
    waiting: dict[str, set[Key]] = field(default_factory=dict)
    """Queue and webhook-id."""
    posts: list[int] = field(default_factory=list)
    """Ids of attempts."""

    @property
    def resendable(self) -> int:
        dead = sum(len(one) for one in self.dead.values())
        return dead + sum(len(one) for one in self.waiting.values()) + len(self.posts)


class Resends:
    def __init__(
        self,
        attempts: AttemptLog,
        subscriptions: SubscriptionStore,
        dead_letters: DeadLetters,
        waiting: PendingRetries,
        posts: DirectPosts,
        tasks: Tasks,
    ) -> None:
        self._attempts = attempts
        self._subscriptions = subscriptions
        self._dead_letters = dead_letters
        self._waiting = waiting
        self._posts = posts
        self._tasks = tasks
        self._slots = asyncio.Semaphore(POSTS_AT_ONCE)

    async def one(self, stored: StoredAttempt) -> Resent:
        """Sends the message of an attempt again. Raises `NotResent` with the reason."""
        attempt = stored.attempt
        active = self._active(attempt.subscription_id)
        if active is None:
            raise _refused(stored, "its subscription is over: subscribe the callback again")
        tried = await self.of_message(attempt)
        last = tried[0]
        if last.attempt.outcome is AttemptOutcome.DEAD and await self._replay(active, attempt):
            return Resent(ResendMethod.REPLAYED)
        if last.attempt.outcome is AttemptOutcome.RETRIED and await self._deliver_now(
            active, attempt
        ):
            return Resent(ResendMethod.HASTENED)
        whole = next((one for one in tried if one.attempt.has_whole_request), None)
        if whole is not None and not attempt.has_whole_request:
            stored = await self._attempts.get(whole.id) or stored
        return Resent(ResendMethod.SENT, await self._post(active, stored, last.attempt.number + 1))

    async def plan(self, wanted: Sequence[StoredAttempt]) -> ResendPlan:
        """Returns what can be sent again of the messages of attempts, the newest first."""
        requests: dict[Key, int | None] = {}
        for one in wanted:
            key = one.attempt.subscription_id, one.attempt.webhook_id
            if requests.get(key) is None:
                requests[key] = one.id if one.attempt.has_whole_request else None
        plan = ResendPlan(matching=len(requests))
        by_vhost: dict[str, dict[Key, tuple[ActiveSubscription, int | None]]] = {}
        for key, attempt_id in requests.items():
            active = self._active(key[0])
            if active is not None:
                messages = by_vhost.setdefault(active.subscription.source.vhost, {})
                messages[key] = active, attempt_id
        for vhost, messages in by_vhost.items():
            await self._plan_vhost(plan, vhost, messages)
        return plan

    async def carry_out(self, plan: ResendPlan) -> int:
        """Sends what is planned; posts go on after it returns. Returns how many are sent or in
        their queues: others may have left theirs meanwhile."""
        done = 0
        for vhost, ids in plan.dead.items():
            wanted = DeadLetterFilter(ids=frozenset(ids))
            done += (await self._dead_letters.replay([vhost], wanted)).done
        for vhost, places in plan.waiting.items():
            done += len(await self._waiting.deliver_now(vhost, places))
        if plan.posts:
            self._tasks.own(self._post_all(plan.posts))
        return done + len(plan.posts)

    async def _plan_vhost(
        self,
        plan: ResendPlan,
        vhost: str,
        messages: dict[Key, tuple[ActiveSubscription, int | None]],
    ) -> None:
        dead_ids = await self._dead_letters.ids(vhost)
        places = await self._waiting.places(vhost)
        for key, (active, with_request) in messages.items():
            place = active.subscription.queue, key[1]
            if key in dead_ids:
                plan.dead.setdefault(vhost, set()).add(dead_ids[key])
            elif place in places:
                plan.waiting.setdefault(vhost, set()).add(place)
            elif with_request is not None:
                plan.posts.append(with_request)

    async def _post_all(self, ids: Sequence[int]) -> None:
        await asyncio.gather(*(self._post_one(one) for one in ids))

    async def _post_one(self, attempt_id: int) -> None:
        async with self._slots:
            stored = await self._attempts.get(attempt_id)
            active = None if stored is None else self._active(stored.attempt.subscription_id)
            if stored is not None and active is not None:
                await self._post(active, stored, stored.attempt.number + 1)

    def _active(self, subscription_id: str) -> ActiveSubscription | None:
        return self._subscriptions.by_id(subscription_id)

    async def of_message(self, attempt: Attempt) -> list[StoredAttempt]:
        """Returns the last attempts of the same message, the newest first."""
        wanted = AttemptFilter(
            subscription_ids=[attempt.subscription_id], webhook_id=attempt.webhook_id
        )
        return await self._attempts.find(wanted)

    async def _replay(self, active: ActiveSubscription, attempt: Attempt) -> bool:
        vhost = active.subscription.source.vhost
        wanted = DeadLetterFilter(
            subscription=attempt.subscription_id, webhook_id=attempt.webhook_id
        )
        found = await self._dead_letters.page([vhost], wanted, 0, 1)
        if not found.dead_letters:
            return False
        await self._dead_letters.replay_one(vhost, found.dead_letters[0].id, None)
        return True

    async def _deliver_now(self, active: ActiveSubscription, attempt: Attempt) -> bool:
        found = active.subscription
        blocking = active.blocking
        is_first = blocking is not None and blocking.webhook_id == attempt.webhook_id
        if is_first or found.is_anonymous:  # it waits at the head of its own queue
            await self._subscriptions.resume(active)
            return True
        place = found.queue, attempt.webhook_id
        return bool(await self._waiting.deliver_now(found.source.vhost, {place}))

    async def _post(
        self, active: ActiveSubscription, stored: StoredAttempt, number: int
    ) -> Attempt:
        kept = stored.attempt.request
        if kept is None:
            raise _refused(stored, "its request was not kept (setting attempt_requests)")
        if not kept.is_whole:
            reason = (
                f"only {len(kept.body)} of the {kept.size} bytes of its body were kept "
                "(setting attempt_request_bytes)"
            )
            raise _refused(stored, reason)
        return await self._posts.send_again(active, kept, stored.attempt.webhook_id, number)


def _refused(stored: StoredAttempt, reason: str) -> NotResent:
    return NotResent(reason, field="id", value=str(stored.id))
