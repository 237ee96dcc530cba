"""Makes the client at its first use, in a thread (see `hub/client_factories.py`)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ..guard import domains
from ..guard.guard import Guard
from ..settings import HubSettings
from ..workers.pool import Workers

if TYPE_CHECKING:
    from .client import HubClient


async def make_client(settings: HubSettings, guard: Guard, workers: Workers) -> HubClient:
    """Returns a new client."""
    await domains.load()
    return await asyncio.to_thread(_make_client, settings, guard, workers)


def _make_client(settings: HubSettings, guard: Guard, workers: Workers) -> HubClient:
    from .client import HubClient  # a new one loads certificates too

    return HubClient(settings, guard, workers)
