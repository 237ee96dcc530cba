"""Waits for the store to commit."""

from __future__ import annotations

import asyncio
from functools import partial

from ...core.broker import Broker
from .names import set_done


async def is_durable(broker: Broker, commit: int) -> bool:
    """Returns true once the commit is durable, or false if the disk has refused it."""
    progress = broker.store.progress
    while commit > progress.committed:
        if commit <= progress.refused:
            return False
        await _next_commit(broker)
    return True


def _next_commit(broker: Broker) -> asyncio.Future[None]:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    broker.commits.on_next(partial(set_done, future))
    return future
