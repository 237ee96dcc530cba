"""Builds the client at its first use, importing httpx in a thread (see
`hub/client_factories.py`)."""

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
    await domains.load()
    return await asyncio.to_thread(_make_client, settings, guard, workers)


def _make_client(settings: HubSettings, guard: Guard, workers: Workers) -> HubClient:
    from .client import HubClient  # loads certificates too when made

    return HubClient(settings, guard, workers)
