"""Restores the failures of subscriptions from the log of attempts after a start."""

from __future__ import annotations

from collections.abc import Callable

from ..subscriptions.active import ActiveSubscription
from .attempt import Attempt
from .log import AttemptLog


async def restore_failures(
    log: AttemptLog, active_of: Callable[[str], ActiveSubscription | None]
) -> None:
    """Restores the last failure of subscriptions; `active_of` finds one by its id.

    Raises `StorageFailed`.
    """
    for subscription_id, stored in (await log.last_failures()).items():
        active = active_of(subscription_id)
        if active is not None and active.failure_state is None and not active.last_success_at:
            active.failed(_error(stored.attempt), stored.attempt.at)


def _error(attempt: Attempt) -> str:
    return attempt.response if attempt.status is None else f"status {attempt.status}"
