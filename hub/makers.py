"""Builds the HTTP clients at their first use, importing them in a thread: aiohttp and httpx
take 0.1 to 0.2 s each, in which the broker must not stand still."""

from __future__ import annotations

import asyncio
import importlib
from typing import TYPE_CHECKING

from .guard.guard import Guard
from .sender.port import Sender
from .settings import HubSettings

if TYPE_CHECKING:
    from .fetch.fetcher import Fetcher
    from .verification.verify import Verifier


async def make_sender(settings: HubSettings, guard: Guard) -> Sender:
    await asyncio.to_thread(importlib.import_module, f"{__package__}.sender.aiohttp_client")
    from .sender.aiohttp_client import AiohttpSender

    return AiohttpSender(settings, guard)


async def make_verifier(settings: HubSettings, guard: Guard) -> Verifier:
    return await asyncio.to_thread(_make_verifier, settings, guard)


def _make_verifier(settings: HubSettings, guard: Guard) -> Verifier:
    from .verification.verify import Verifier  # loads certificates too when made

    return Verifier(settings, guard)


async def make_fetcher(settings: HubSettings, guard: Guard) -> Fetcher:
    return await asyncio.to_thread(_make_fetcher, settings, guard)


def _make_fetcher(settings: HubSettings, guard: Guard) -> Fetcher:
    from .fetch.fetcher import Fetcher

    return Fetcher(settings, guard)
