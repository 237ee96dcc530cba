"""The broker under test, and connections of pika that are closed when their test ends.

`pytest tests/clients --against=both` runs every test against Warren and against RabbitMQ; a test
that passes on neither is wrong itself. Tests marked `warren_only` hold rules where Warren goes
further than RabbitMQ 3.10 on purpose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.support import node

from .support import Broker, fresh

OPTION = "--against"
Connect = Callable[..., pika.BlockingConnection]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        OPTION,
        choices=["warren", "rabbitmq", "both"],
        default="warren",
        help="the broker that tests/clients talk to",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "warren_only(reason): RabbitMQ 3.10 answers differently, and why we don't"
    )


def _brokers(metafunc: pytest.Metafunc) -> list[str]:
    # Without tests/clients on the command line this file is read too late to add an option.
    chosen = metafunc.config.getoption(OPTION, default="warren")
    names = ["warren", "rabbitmq"] if chosen == "both" else [chosen]
    if metafunc.definition.get_closest_marker("warren_only"):
        names = [name for name in names if name == "warren"]
    return names


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "broker" in metafunc.fixturenames:
        metafunc.parametrize("broker", _brokers(metafunc), indirect=True, scope="module")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test without a broker to run on is left out; with RabbitMQ alone these are ours."""
    if config.getoption(OPTION, default="warren") != "rabbitmq":
        return
    ours = [item for item in items if item.get_closest_marker("warren_only")]
    config.hook.pytest_deselected(items=ours)
    items[:] = [item for item in items if item not in ours]


@pytest.fixture(scope="module")
def broker(request: pytest.FixtureRequest) -> Broker:
    """Where the broker of this run listens."""
    url = request.getfixturevalue(request.param).amqp_url
    parts = urlsplit(url)
    assert parts.hostname is not None and parts.port is not None
    return Broker(request.param, parts.hostname, parts.port, url)


@pytest.fixture
def connect(broker: Broker) -> Iterator[Connect]:
    """Opens connections of pika; keyword arguments are those of `pika.ConnectionParameters`."""
    opened: list[pika.BlockingConnection] = []

    def open_one(**parameters: object) -> pika.BlockingConnection:
        connection = pika.BlockingConnection(broker.pika_parameters(**parameters))
        opened.append(connection)
        return connection

    yield open_one
    for connection in opened:
        if connection.is_open:
            connection.close()


@pytest.fixture
def connection(connect: Connect) -> pika.BlockingConnection:
    return connect()


@pytest.fixture
def channel(connection: pika.BlockingConnection) -> BlockingChannel:
    return connection.channel()


@pytest.fixture
def queue(channel: BlockingChannel) -> str:
    """A queue that dies with the connection of `channel`."""
    name = fresh("queue")
    channel.queue_declare(name, exclusive=True)
    return name


@pytest.fixture(scope="session")
def node_folder() -> Path:
    """Where the JavaScript clients are, installed as package-lock.json says."""
    if reason := node.missing():
        pytest.skip(reason)
    return node.installed_packages()
