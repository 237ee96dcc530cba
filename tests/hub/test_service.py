"""Subscribing and being delivered to, end to end within the hub."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from tests.support.settings import hub_settings
from warrenmq.core.errors import ChannelError
from warrenmq.hub.errors import CallbackRefused
from warrenmq.hub.service import KEY_NAME, Hub
from warrenmq.hub.tokens.scope import ManageScope

from .attempts.support import attempt
from .support import BASE_URL, INBOX, NEWS, House, until


async def test_the_hubs_own_address_is_refused_as_a_callback(house: House) -> None:
    """Also if it is none of the configured addresses."""
    await house.restart(base_urls=())
    with pytest.raises(CallbackRefused, match="a token binds it instead"):
        await house.subscribe(NEWS, f"{BASE_URL}/endpoint/q/in")


async def test_outcomes_are_written_soon_if_a_queue_waits_for_them(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would be gathered for longer; the engine knows which queues stop without acks."""
    monkeypatch.setattr("warrenmq.hub.attempts.log.GATHER_S", 3600.0)
    settled: list[int] = []
    for count in (1, 2):
        house.hub.attempts.record(attempt(), settled.extend, count)
        house.engine.on_short()
        await until(partial(settled.__contains__, count), f"outcome {count}")


async def test_the_key_of_secrets_may_be_elsewhere(house: House, tmp_path: Path) -> None:
    """A copy of the data directory alone opens none of them."""
    elsewhere = tmp_path / "keys" / "warren.key"
    directory = tmp_path / "other"
    directory.mkdir()
    settings = hub_settings(key_file=str(elsewhere))
    hub = Hub(house.engine, settings, directory)
    hub.internal_headers.message_id(1)
    assert elsewhere.stat().st_mode & 0o777 == 0o600
    assert not (directory / KEY_NAME).exists()
    assert Hub(house.engine, settings, directory).internal_headers.message_id(
        1
    ) == hub.internal_headers.message_id(1)
    assert house.hub.internal_headers.message_id(1) != hub.internal_headers.message_id(1)


@pytest.mark.parametrize(
    "make",
    [
        lambda hub: hub.tokens.make("t", "gone", [ManageScope("read", "*", None)]),
        lambda hub: hub.capabilities.make(INBOX, "gone"),
    ],
)
async def test_credentials_end_with_an_owner_who_is_deleted_while_they_are_stored(
    house: House, make: Callable[[Hub], Awaitable[object]]
) -> None:
    """Another user of that name must not have them. The database is opened for them."""
    making = asyncio.ensure_future(make(house.hub))
    await asyncio.sleep(0)
    house.hub.forget_owner("gone")
    with pytest.raises(ChannelError, match="was deleted"):
        await making
    await house.restart()
    assert not (house.hub.tokens.all() or house.hub.capabilities.all())
