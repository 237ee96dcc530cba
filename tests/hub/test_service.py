"""Subscribing and being delivered to, end to end within the hub."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.support.settings import hub_settings
from warrenmq.hub.errors import (
    CallbackRefused,
)
from warrenmq.hub.service import KEY_NAME, Hub

from .attempts.support import attempt
from .support import BASE_URL, NEWS, House, until


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
