"""A hub in the test's own event loop, on the embedded engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.users import guest_users
from warren.core.broker import Broker
from warren.core.server.listener import Listener
from warren.hub.engine.embedded import EmbeddedEngine
from warren.hub.engine.port import ExchangeSpec, QueueSpec

from .support import House


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """An engine with the topic exchange `news` and the queue `in`, and a started hub."""
    broker = Broker(guest_users())
    listener = Listener(broker)
    await listener.start([])
    engine = EmbeddedEngine(broker)
    await engine.declare_exchange("/", ExchangeSpec("news", "topic"))
    await engine.declare_queue("/", QueueSpec("in"))
    house = House(engine, tmp_path)
    await house.start()
    yield house
    await house.stop()
    await listener.stop()
