"""The brokers under load: Warren, and RabbitMQ beside it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from pamqp import decode

from tests.support import rabbitmq
from tests.support.hub_on_rabbitmq import HubOnRabbitMQ, prepare
from tests.support.rabbitmq import RabbitMQServer
from tests.support.rabbitmq_cluster import NODES, RabbitMQCluster
from tests.support.server import WarrenServer, warren_command

from .client import Address, Client
from .measure import Meter

RESTART_TIMEOUT_S = 300.0


@dataclass(frozen=True)
class SocketBytes:
    """Whether the kernel counts socket traffic of the broker among its reads and writes."""

    reads_counted: bool
    writes_counted: bool


@dataclass
class Broker:
    """The addresses of a broker, its meter and its data directory."""

    name: str
    address: Address
    meter: Meter
    data: Path
    output: Callable[[], str]
    """Everything that the broker has printed."""
    restart: Callable[[bool], float]
    """Ends the broker, by SIGKILL if True, and starts it again with the same data: gives the
    seconds from the start of its process to the word that it serves."""
    start_s: float
    """The time of a start with an empty data directory."""
    http: Address | None = None
    sockets: SocketBytes | None = None
    """Found out once, by the first row that counts bytes of files."""

    def version(self) -> str:
        """Product and version: of what is installed here, else as the broker announces them."""
        if self.name == "Warren":
            # It announces the RabbitMQ release that clients may take it for.
            return f"Warren {metadata.version('warrenmq')}"
        client = Client(self.address)
        _, announced = decode.field_table(client.start_payload[2:])
        client.close()
        return f"{announced.get('product', self.name)!s} {announced.get('version', '?')!s}"


@contextlib.contextmanager
def warren() -> Iterator[Broker]:
    begun = time.monotonic()
    with WarrenServer(command=warren_command(), timeout_s=RESTART_TIMEOUT_S) as server:
        start_s = time.monotonic() - begun

        def restart(crash: bool) -> float:
            server.kill() if crash else server.stop()
            start = time.monotonic()
            server.start()
            broker.meter = Meter(server.pid)
            return time.monotonic() - start

        address = Address(server.host, server.amqp_port)
        http = Address(server.host, server.http_port)
        meter = Meter(server.pid)
        broker = Broker(
            "Warren", address, meter, server.data, server.output, restart, start_s, http
        )
        server.rest()
        yield broker


@contextlib.contextmanager
def rabbit() -> Iterator[Broker]:
    begun = time.monotonic()
    with RabbitMQServer("rabbitmq_consistent_hash_exchange") as server:
        start_s = time.monotonic() - begun

        def restart(crash: bool) -> float:
            server.kill() if crash else server.shut_down()
            start = time.monotonic()
            server.start()
            broker.meter = Meter(server.pid)
            return time.monotonic() - start

        address, meter = Address(server.host, server.port), Meter(server.pid)
        broker = Broker("RabbitMQ", address, meter, server.data, server.output, restart, start_s)
        yield broker


@contextlib.contextmanager
def _nodes(count: int) -> Iterator[list[RabbitMQServer]]:
    if count == 1:
        with RabbitMQServer("rabbitmq_management") as node:
            yield [node]
    else:
        with RabbitMQCluster("rabbitmq_management") as cluster:
            yield [*cluster.nodes]


@contextlib.contextmanager
def warren_on_rabbit(nodes: int) -> Iterator[Broker]:
    """The hub on a RabbitMQ of one node or three; the meter is the hub's."""
    with _nodes(nodes) as (first, *others):
        prepare(first)
        begun = time.monotonic()
        with HubOnRabbitMQ(first, others=others, command=warren_command()) as hub:
            start_s = time.monotonic() - begun

            def restart(crash: bool) -> float:
                hub.kill() if crash else hub.stop()
                start = time.monotonic()
                hub.start()
                broker.meter = Meter(hub.pid)
                return time.monotonic() - start

            address, http = Address(first.host, first.port), Address(hub.host, hub.http_port)
            name = f"Warren on {'RabbitMQ' if nodes == 1 else f'{nodes} RabbitMQs'}"
            broker = Broker(
                name, address, Meter(hub.pid), hub.data, hub.output, restart, start_s, http
            )
            hub.rest()
            yield broker


def warren_on_node() -> AbstractContextManager[Broker]:
    return warren_on_rabbit(1)


def warren_on_cluster() -> AbstractContextManager[Broker]:
    return warren_on_rabbit(NODES)


def missing_rabbit() -> str | None:
    return rabbitmq.missing()
