"""Moves the messages of a queue: each is published anew, and leaves its queue once that is
confirmed. A crash between the two leaves both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...core.auth import User
from .port import Engine, PublishOutcome, SinglePublish, UnackedMessage


@dataclass(frozen=True, slots=True)
class MoveTarget:
    """A queue, or an exchange with a routing key, None for the key of each message."""

    exchange: str = ""
    routing_key: str | None = None
    queue: str | None = None


@dataclass(slots=True)
class MoveResult:
    """The result of a move: how many messages were moved, how many are left, and why they are; ""
    if none had to."""

    count: int = 0
    left: int = 0
    reason: str = ""


async def move(
    engine: Engine, user: User, vhost: str, queue: str, target: MoveTarget, limit: int
) -> MoveResult:
    """Moves up to `limit` messages that are ready now, oldest first, with the user's permissions.

    A message that may not be published, or that no queue takes, stays, and the move ends, though
    some of those after it may have been moved. Raises `ChannelError` 404 if the queue does not
    exist.
    """
    moved = MoveResult()

    async def look(chunk: Sequence[UnackedMessage]) -> bool:
        copies = [_copy(one, target) for one in chunk]
        outcomes = await engine.publish_each(user, vhost, copies, are_copies=True)
        for one, outcome in zip(chunk, outcomes, strict=True):
            if outcome is PublishOutcome.ROUTED:
                one.ack()
                moved.count += 1
            else:
                moved.reason = moved.reason or _reason(outcome)
        return not moved.reason

    await engine.scan(vhost, queue, look, limit=limit)
    found = await engine.queue(vhost, queue)
    moved.left = 0 if found is None else found.messages_ready
    return moved


def _copy(taken: UnackedMessage, target: MoveTarget) -> SinglePublish:
    message = taken.message
    key = message.routing_key if target.routing_key is None else target.routing_key
    return SinglePublish(target.exchange, key, message.properties, message.body, target.queue)


def _reason(outcome: PublishOutcome | Exception) -> str:
    return outcome.value if isinstance(outcome, PublishOutcome) else str(outcome)
