"""The brokers under load: Warren, RabbitMQ beside it, or one that runs already."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pamqp import decode

from tests.support import rabbitmq
from tests.support.rabbitmq import RabbitMQServer
from tests.support.server import WarrenServer

from .client import Address, Client
from .measure import Meter

OPEN_FILES_NEEDED = 9_000


@dataclass
class Broker:
    """Where to reach a broker, and its meter unless it runs elsewhere.

    One that is not `ours` stays in use, so what a scenario made there has to be deleted.
    """

    name: str
    address: Address
    http: Address | None = None
    meter: Meter | None = None
    data: Path | None = None
    ours: bool = True
    output: Callable[[], str] = str
    """Everything that the broker has printed."""

    def version(self) -> str:
        """Product and version: of what is installed here, else as the broker announces them."""
        if self.name == "Warren":
            # It announces the RabbitMQ release that clients may take it for.
            return f"Warren {metadata.version('warren')}"
        client = Client(self.address)
        _, announced = decode.field_table(client.start_payload[2:])
        client.close()
        return f"{announced.get('product', self.name)!s} {announced.get('version', '?')!s}"


@contextlib.contextmanager
def warren() -> Iterator[Broker]:
    with WarrenServer(dev=True) as server:
        address = Address(server.host, server.amqp_port)
        http = Address(server.host, server.http_port)
        yield Broker("Warren", address, http, Meter(server.pid), server.data, output=server.output)


@contextlib.contextmanager
def rabbit() -> Iterator[Broker]:
    with RabbitMQServer() as server:
        address = Address(server.host, server.port)
        yield Broker("RabbitMQ", address, meter=Meter(server.pid), output=server.output)


@contextlib.contextmanager
def running(url: str, http_url: str | None = None, pid: int | None = None) -> Iterator[Broker]:
    """A broker that somebody else started; without its pid there are no CPU figures."""
    http = _address(http_url, 80) if http_url else None
    yield Broker("broker", _address(url, 5672), http, Meter(pid) if pid else None, ours=False)


def _address(url: str, port: int) -> Address:
    parts = urlsplit(url)
    return Address(
        parts.hostname or "localhost",
        parts.port or port,
        unquote(parts.username or "guest"),
        unquote(parts.password or "guest"),
        unquote(parts.path[1:]) or "/",
    )


def missing_rabbit() -> str | None:
    return rabbitmq.missing()
