"""A hub in the test's own event loop, on the embedded engine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.forks import STARTERS
from tests.support.forks.copied_workers import Copies
from tests.support.http import Callback
from tests.support.users import guest_users
from warrenmq.core.broker import Broker
from warrenmq.core.server.listener import Listener
from warrenmq.hub.engine.embedded import EmbeddedEngine
from warrenmq.hub.engine.port import ExchangeSpec, QueueSpec
from warrenmq.hub.keys.seal import Sealer
from warrenmq.hub.processes import starter as starter_module
from warrenmq.hub.processes.starter import ProcessStarter
from warrenmq.hub.service import KEY_NAME
from warrenmq.hub.storage.storage import Storage
from warrenmq.hub.workers.pool import Workers

from .support import House, text


@pytest.fixture
def database_url() -> str | None:
    """SQLite in the data directory; modules that try both databases say `either_database`."""
    return None


@pytest.fixture(params=["sqlite", "postgresql"])
def either_database(request: pytest.FixtureRequest) -> str | None:
    if request.param == "sqlite":
        return None
    url: str = request.getfixturevalue("postgresql_url")
    return url


@pytest.fixture
def sealer(tmp_path: Path) -> Sealer:
    """With the key of the data directory."""
    return Sealer(tmp_path / KEY_NAME)


@pytest.fixture
async def storage(
    tmp_path: Path, either_database: str | None, sealer: Sealer
) -> AsyncIterator[Storage]:
    """Either database, in the data directory or beside it."""
    storage = Storage(tmp_path, either_database, sealer)
    yield storage
    await storage.close()


@pytest.fixture(autouse=True)
def copied_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Worker processes begin as copies, but for the tests of these themselves."""
    monkeypatch.setattr(starter_module, "subprocess", Copies(STARTERS))


@pytest.fixture
async def workers() -> AsyncIterator[Workers]:
    """With the limits of a server."""
    with ProcessStarter() as starter:
        workers = Workers(starter)
        yield workers
        await workers.stop()


@pytest.fixture
def broker() -> Broker:
    """The one behind the engine."""
    return Broker(guest_users())


@pytest.fixture
async def house(tmp_path: Path, database_url: str | None, broker: Broker) -> AsyncIterator[House]:
    """An engine with the topic exchange `news` and the queue `in`, and a started hub."""
    listener = Listener(broker)
    await listener.start([])
    engine = EmbeddedEngine(broker)
    await engine.declare_exchange("/", ExchangeSpec("news", "topic"))
    await engine.declare_queue("/", QueueSpec("in"))
    house = House(engine, broker, tmp_path, database_url=database_url)
    await house.start()
    yield house
    await house.stop()
    await listener.stop()


@pytest.fixture
def publisher() -> Iterator[Callback]:
    """Somebody else's topic."""
    with Callback() as publisher:
        publisher.default = text("one")
        yield publisher
