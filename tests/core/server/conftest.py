from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.amqp import make_broker
from warrenmq.core.clock import ManualClock
from warrenmq.core.server.listener import Listener
from warrenmq.core.store.port import Store


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store() -> Store | None:
    """The store of the listener's broker; None for one in memory."""
    return None


@pytest.fixture
async def listener(clock: ManualClock, store: Store | None) -> AsyncIterator[Listener]:
    """A listener without sockets, on a stopped clock."""
    listener = Listener(make_broker(store, clock))
    await listener.start([])
    yield listener
    for peer in list(listener.peers):
        peer.connection_lost(None)
    await listener.stop()
