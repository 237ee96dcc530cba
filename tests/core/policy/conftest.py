"""A broker without contents, and a client of it."""

from __future__ import annotations

import pytest

from tests.support.amqp import Client, make_broker
from warrenmq.core.broker import Broker
from warrenmq.core.clock import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def broker(clock: ManualClock) -> Broker:
    return make_broker(clock=clock)


@pytest.fixture
def client(broker: Broker) -> Client:
    return Client(broker)
