"""The brokers under load: Warren, and RabbitMQ beside it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory

from pamqp import decode

from tests.support import rabbitmq
from tests.support.hub_on_rabbitmq import HubOnRabbitMQ, prepare
from tests.support.postgresql import PostgreSQLServer
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
    other_hubs: Sequence[Address] = ()
    """Hubs that publish as well as the one at `http` does."""
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
def warren_on_rabbit(nodes: int, standbys: int = 0) -> Iterator[Broker]:
    """The hub on a RabbitMQ of one node or three, and its standbys; the meter is that of hubs."""
    with _nodes(nodes) as (first, *others), _shared(standbys) as shared, ExitStack() as stack:
        prepare(first)
        begun = time.monotonic()
        hub, *waiting = hubs = [
            HubOnRabbitMQ(first, shared, others=others, command=warren_command())
            for _ in range(1 + standbys)
        ]
        stack.enter_context(hub)
        start_s = time.monotonic() - begun
        for one in waiting:
            stack.enter_context(one)

        def restart(crash: bool) -> float:
            hub.kill() if crash else hub.stop()
            start = time.monotonic()
            hub.start()
            broker.meter = meter()
            return time.monotonic() - start

        def meter() -> Meter:
            return Meter(*(one.pid for one in hubs))

        address = Address(first.host, first.port)
        http, *other_hubs = (Address(one.host, one.http_port) for one in hubs)
        name = f"{'Warren' if not standbys else f'{len(hubs)} Warrens'} on "
        name += "RabbitMQ" if nodes == 1 else f"{nodes} RabbitMQs"
        broker = Broker(
            name, address, meter(), hub.data, hub.output, restart, start_s, http, other_hubs
        )
        for one in hubs:
            one.rest()
        yield broker


@contextlib.contextmanager
def _shared(standbys: int) -> Iterator[list[str]]:
    """The arguments of hubs that share a database and a key, if there are several."""
    if not standbys:
        yield []
        return
    with PostgreSQLServer() as database, TemporaryDirectory() as folder:
        yield ["--database", database.create(), "--hub-key-file", str(Path(folder, "hub.key"))]


def warren_on_node() -> AbstractContextManager[Broker]:
    return warren_on_rabbit(1)


def warrens_on_node() -> AbstractContextManager[Broker]:
    return warren_on_rabbit(1, standbys=1)


def warren_on_cluster() -> AbstractContextManager[Broker]:
    return warren_on_rabbit(NODES)


def missing_rabbit() -> str | None:
    return rabbitmq.missing()
