from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.amqp import make_broker
from warrenmq.core.clock import ManualClock
from warrenmq.core.server.listener import Listener


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def listener(clock: ManualClock) -> AsyncIterator[Listener]:
    """Without sockets; its broker's time stands still."""
    listener = Listener(make_broker(clock=clock))
    await listener.start([])
    yield listener
    for peer in list(listener.peers):
        peer.connection_lost(None)
    await listener.stop()
