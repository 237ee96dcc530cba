"""A hub whose engine is a RabbitMQ of the tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx

from .rabbitmq import RabbitMQServer
from .server import WarrenServer

TAGS = "administrator,impersonator"
START_S = 60.0


def cluster() -> RabbitMQServer:
    """A RabbitMQ with the plugin that the hub needs."""
    return RabbitMQServer("rabbitmq_management")


def management(rabbitmq: RabbitMQServer) -> str:
    """The URL of its management API."""
    return f"http://{rabbitmq.host}:{rabbitmq.management_port}"


def put(rabbitmq: RabbitMQServer, path: str, **document: Any) -> None:
    """Puts a user, permission or policy, by its path below `/api`."""
    url = f"{management(rabbitmq)}/api/{path}"
    httpx.put(url, json=document, auth=("guest", "guest"), timeout=START_S).raise_for_status()


def permit(rabbitmq: RabbitMQServer, tags: str = TAGS) -> None:
    """Gives the hub's user these tags."""
    put(rabbitmq, "users/guest", password="guest", tags=tags)


class HubOnRabbitMQ(WarrenServer):
    """`warren serve --engine`; AMQP clients connect to the RabbitMQ."""

    def __init__(self, rabbitmq: RabbitMQServer, args: Sequence[str] = ()) -> None:
        self._rabbitmq = rabbitmq
        # The first node of the list never answers.
        nodes = f"{rabbitmq.host}:1,{rabbitmq.host}:{rabbitmq.port}"
        engine = ["--engine", f"amqp://guest:guest@{nodes}/"]
        engine += ["--engine-management", management(rabbitmq)]
        super().__init__(dev=True, args=[*engine, *args], timeout_s=START_S)

    @property
    def amqp_url(self) -> str:
        return self._rabbitmq.amqp_url
