"""Which subscriptions were in trouble when the hub was stopped, told again after its start."""

from __future__ import annotations

from collections.abc import Callable

from ..subscriptions.live import Live
from .attempt import Attempt
from .log import AttemptLog


async def recall_failures(log: AttemptLog, live_of: Callable[[str], Live | None]) -> None:
    """Subscriptions whose last delivery failed say so; `live_of` finds one by its id.

    Raises `StorageFailed`.
    """
    for subscription_id, kept in (await log.last_failures()).items():
        live = live_of(subscription_id)
        if live is not None and live.trouble is None and not live.last_success_at:
            live.failed(_error(kept.attempt), kept.attempt.at)


def _error(attempt: Attempt) -> str:
    return attempt.response if attempt.status is None else f"status {attempt.status}"
