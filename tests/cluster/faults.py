"""What `make torture-cluster` does to the cluster, the hub and its database."""

from __future__ import annotations

import errno
import random
from abc import ABC, abstractmethod
from collections.abc import Sequence

from tests.crash.faults import SmallDisk
from tests.support.hub_on_rabbitmq import HubOnRabbitMQ
from tests.support.postgresql import PostgreSQLServer
from tests.support.rabbitmq import RabbitMQServer

from .network import cut_off, reconnect

FILL_BYTES = 1 << 20


class Fault(ABC):
    """It is struck, lasts some seconds, and is healed."""

    name: str

    @abstractmethod
    def strike(self) -> str:
        """Returns whom it has hit."""

    @abstractmethod
    def heal(self) -> None: ...


class NodeFault(Fault):
    """Of any node, chosen each time."""

    def __init__(self, nodes: Sequence[RabbitMQServer], choice: random.Random) -> None:
        self._nodes = nodes
        self._choice = choice

    def choose(self) -> RabbitMQServer:
        self.node = self._choice.choice(self._nodes)
        return self.node


class NodeKilled(NodeFault):
    name = "node killed"

    def strike(self) -> str:
        self.choose().kill()
        return self.node.name

    def heal(self) -> None:
        start_again(self.node)


class NodeCutOff(NodeFault):
    name = "node cut off"

    def strike(self) -> str:
        cut_off(self.choose())
        return self.node.name

    def heal(self) -> None:
        reconnect(self.node)


class HubKilled(Fault):
    name = "hub killed"

    def __init__(self, hub: HubOnRabbitMQ) -> None:
        self._hub = hub

    def strike(self) -> str:
        self._hub.kill()
        return f"process {self._hub.pid}"

    def heal(self) -> None:
        self._hub.start()


class DatabaseKilled(Fault):
    name = "PostgreSQL killed"

    def __init__(self, database: PostgreSQLServer) -> None:
        self._database = database

    def strike(self) -> str:
        self._database.kill()
        return f"process {self._database.pid}"

    def heal(self) -> None:
        self._database.start()


class DiskFull(Fault):
    """The disk of one node is full to its last byte; its alarm comes after that, if at all."""

    name = "disk full"

    def __init__(self, node: RabbitMQServer, disk: SmallDisk) -> None:
        self._node = node
        self._filler = disk.seen_from_outside / "filler"

    def strike(self) -> str:
        with self._filler.open("wb", buffering=0) as filler:
            try:
                while True:
                    filler.write(bytes(FILL_BYTES))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
        return self._node.name

    def heal(self) -> None:
        self._filler.unlink()
        start_again(self._node)


def start_again(node: RabbitMQServer) -> None:
    """As a supervisor does, if it has ended."""
    if not node.running:
        node.start()


def on_small_disk(node: RabbitMQServer, size_bytes: int) -> SmallDisk:
    """Gives the node a file system of its own; to be entered before it is started."""
    node.data.mkdir()
    disk = SmallDisk(node.data, size_bytes)
    node.prefix = disk.inside
    return disk
