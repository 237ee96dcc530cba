"""Fixtures of the conformance tests: a server, connections, and names of a test's own.

They run against a Warren of their own, with `--broker=PORT` against one that runs already.
`pytest tests/conformance --broker=rabbitmq` takes a real RabbitMQ, without the tests in which the
two differ, to see that what they expect is right.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.support.server import WarrenServer

from . import raw

_run = secrets.token_hex(2)
_numbers = itertools.count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--broker", default="warren", help="warren, rabbitmq, or a port")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "differs(reason): RabbitMQ 3.10 answers otherwise")


def _broker(config: pytest.Config) -> str:
    return str(config.getoption("--broker", default="warren"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if _broker(config) != "rabbitmq":
        return
    for item in items:
        if mark := item.get_closest_marker("differs"):
            item.add_marker(pytest.mark.skip(reason=mark.args[0]))


@pytest.fixture(scope="module")
def warren(warren: WarrenServer) -> Iterator[WarrenServer]:
    """A server, whose log must have no internal error at the end."""
    yield warren
    assert "Traceback" not in warren.output()


@pytest.fixture(scope="module")
def amqp_port(request: pytest.FixtureRequest) -> int:
    broker = _broker(request.config)
    if broker.isdecimal():
        return int(broker)
    if broker == "rabbitmq":
        return int(request.getfixturevalue("rabbitmq").port)
    return int(request.getfixturevalue("warren").amqp_port)


@pytest.fixture
def connect(amqp_port: int) -> Iterator[Callable[..., raw.Client]]:
    """Opens connections that are dropped after the test; arguments as of `raw.connect`."""
    with ExitStack() as opened:
        yield lambda **options: opened.enter_context(raw.connect(amqp_port, **options))


@pytest.fixture
def dial(amqp_port: int) -> Iterator[Callable[[], raw.Client]]:
    """Makes TCP connections without sending anything."""
    with ExitStack() as opened:
        yield lambda: opened.enter_context(raw.Client(amqp_port))


@pytest.fixture
def client(connect: Callable[..., raw.Client]) -> raw.Client:
    return connect()


@pytest.fixture
def channel(client: raw.Client) -> raw.Channel:
    return client.channel()


@pytest.fixture
def other(connect: Callable[..., raw.Client]) -> raw.Channel:
    """A channel of another connection."""
    return connect().channel()


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Silences the log of brokers in this process, which refuse thousands of streams."""
    caplog.set_level("ERROR")


@pytest.fixture
def name() -> str:
    """A name that no other test or run on the same broker uses."""
    return f"t{_run}-{next(_numbers)}"
