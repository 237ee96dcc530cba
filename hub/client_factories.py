"""Builds the HTTP clients at their first use, in a thread: reading the system's certificates takes
some 20 ms."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from .guard import domains
from .guard.guard import Guard
from .sender.port import LocalClient, Sender
from .settings import HubSettings

if TYPE_CHECKING:
    from .fetch.fetcher import Fetcher
    from .relay.relay import HttpRelay
    from .sender.client import HttpClient
    from .verification.verify import Verifier


async def make_sender(settings: HubSettings, guard: Guard) -> Sender:
    return await asyncio.to_thread(_make_sender, settings, guard)


def _make_sender(settings: HubSettings, guard: Guard) -> Sender:
    from .sender.http_sender import HttpSender

    return HttpSender(settings, guard)


async def make_verifier(
    settings: HubSettings, guard: Guard, local: LocalClient | None = None
) -> Verifier:
    await domains.load()
    return await asyncio.to_thread(_make_verifier, settings, guard, local)


def _make_verifier(settings: HubSettings, guard: Guard, local: LocalClient | None) -> Verifier:
    from .verification.verify import Verifier  # loads certificates too when made

    return Verifier(settings, guard, local)


async def make_page_client(settings: HubSettings, guard: Guard) -> HttpClient:
    return await asyncio.to_thread(_make_page_client, settings, guard)


def _make_page_client(settings: HubSettings, guard: Guard) -> HttpClient:
    from .fetch.fetcher import client_for_pages

    return client_for_pages(settings, guard)


async def make_relay(settings: HubSettings, guard: Guard) -> HttpRelay:
    return await asyncio.to_thread(_make_relay, settings, guard)


def _make_relay(settings: HubSettings, guard: Guard) -> HttpRelay:
    from .relay.relay import HttpRelay

    return HttpRelay(settings, guard)


async def make_fetcher(settings: HubSettings, guard: Guard) -> Fetcher:
    await domains.load()
    return await asyncio.to_thread(_make_fetcher, settings, guard)


def _make_fetcher(settings: HubSettings, guard: Guard) -> Fetcher:
    from .fetch.fetcher import Fetcher

    return Fetcher(settings, guard)
