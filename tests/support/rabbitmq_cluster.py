"""A cluster of RabbitMQ nodes on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import httpx

from .port_mapper import PortMapper
from .process import Server, wait_until
from .rabbitmq import RabbitMQServer

NODES = 3
ANSWER_S = 30.0
SETTINGS = Path(__file__).parents[2] / "deploy" / "cluster" / "rabbitmq.conf"
QUIET = ("+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none")
"""Schedulers that wait for work leave the processor to other nodes."""


class RabbitMQCluster(Server):
    """Three nodes that find each other as those of the containers do. They may have `hosts`,
    addresses of their own."""

    def __init__(self, *plugins: str, hosts: Sequence[str] = ()) -> None:
        self._mapper = PortMapper(*hosts)
        made = [RabbitMQServer(*plugins, mapper=self._mapper) for _ in range(NODES)]
        for node, host in zip(made, hosts, strict=False):
            node.host = host
        self.nodes: Sequence[RabbitMQServer] = made

    def start(self) -> None:
        """Returns when all nodes have found each other: each finds those before it."""
        settings = SETTINGS.read_text()
        for number, node in enumerate(self.nodes, 1):
            settings = settings.replace(f"rabbit@rabbit{number}", node.name)
        self._mapper.start()
        for node in self.nodes:
            node.flags = QUIET
            node.settings.append(settings)
            node.start()

    @property
    def any_node(self) -> RabbitMQServer:
        """One that runs."""
        return next(one for one in self.nodes if one.running)

    def ctl(self, *arguments: str) -> str:
        """Returns the output of `rabbitmqctl` at a running node."""
        return self.any_node.ctl(*arguments)

    def node_of_the_hub(self) -> RabbitMQServer:
        """The node that the hub's connections are at; it is known some seconds late."""
        found: list[RabbitMQServer] = []

        def is_known() -> bool:
            names = self._names_with_the_hub()
            found.extend(one for one in self.nodes if one.name in names and one.running)
            return bool(found)

        wait_until(is_known, ANSWER_S, "the hub's connection among those of RabbitMQ")
        return found[0]

    def _names_with_the_hub(self) -> set[str]:
        url = f"{self.any_node.management_url}/api/connections"
        answer = httpx.get(url, auth=("guest", "guest"), timeout=ANSWER_S)
        return {
            one["node"]
            for one in answer.raise_for_status().json()
            if one["client_properties"].get("connection_name", "").startswith("Warren hub")
        }

    def stop(self) -> None:
        """Kills the nodes, whose data goes too."""
        for node in self.nodes:
            if node.running:
                node.kill()
            node.stop()
        self._mapper.stop()
