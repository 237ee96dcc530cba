"""A hub whose engine is a RabbitMQ of the tests, made and started as docs/scaling.md says."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from .process import wait_until
from .rabbitmq import RabbitMQServer
from .server import WarrenServer

PAGE = Path(__file__).parents[2] / "docs" / "scaling.md"
GUEST = "guest"
"""The user that RabbitMQ has from the beginning."""
USER = "warren"
PASSWORD = "SECRET"
TAGS = "administrator,impersonator"
START_S = 180.0
CLIENTS = ("connections", "channels")
"""Lists that RabbitMQ shortens a moment after a client has gone."""


def commands(program: str) -> Iterator[list[str]]:
    """The arguments of each command of the page that runs this program."""
    found = re.search(r"^```sh\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    for line in found[1].splitlines():
        first, *arguments = shlex.split(line)
        if first == program:
            yield arguments


@contextmanager
def prepared(node: RabbitMQServer) -> Iterator[RabbitMQServer]:
    """A node with the user that the hub needs; in the end it is as after its first start."""
    prepare(node)
    yield node
    wait_until(lambda: not any(ask(node, "GET", one) for one in CLIENTS), START_S, "no clients")
    for kind, kept in (("vhosts", ""), ("users", GUEST)):
        for one in ask(node, "GET", kind):
            if one["name"] != kept:
                ask(node, "DELETE", f"{kind}/{quote(one['name'], safe='')}")
    put(node, "vhosts/%2F", description="Default virtual host", tags="")
    put(node, f"permissions/%2F/{GUEST}", configure=".*", write=".*", read=".*")


def prepare(node: RabbitMQServer) -> None:
    """Makes the hub's user on a node, and its cluster."""
    for arguments in commands("rabbitmqctl"):
        node.ctl(*arguments)


def ask(rabbitmq: RabbitMQServer, method: str, path: str, **document: Any) -> Any:
    """Returns the document at a path below `/api`, None if there is none."""
    url = f"{rabbitmq.management_url}/api/{path}"
    login = (GUEST, GUEST)
    answer = httpx.request(method, url, json=document, auth=login, timeout=START_S)
    return answer.raise_for_status().content and answer.json()


def put(rabbitmq: RabbitMQServer, path: str, **document: Any) -> None:
    """Puts a user, permission or policy, by its path below `/api`."""
    ask(rabbitmq, "PUT", path, **document)


def permit(rabbitmq: RabbitMQServer, tags: str = TAGS) -> None:
    """Gives the hub's user these tags."""
    put(rabbitmq, f"users/{USER}", password=PASSWORD, tags=tags)


class HubOnRabbitMQ(WarrenServer):
    """`warren serve --engine`; AMQP clients connect to the first RabbitMQ. It may be a standby."""

    STARTED = ("ready", "standby")

    def __init__(
        self,
        rabbitmq: RabbitMQServer,
        args: Sequence[str] = (),
        *,
        others: Sequence[RabbitMQServer] = (),
        command: Sequence[str] | None = None,
    ) -> None:
        self.nodes = [rabbitmq, *others]
        # The first node of the list never answers.
        nodes = [f"{rabbitmq.host}:1", *(f"{one.host}:{one.port}" for one in self.nodes)]
        ((serve, *engine),) = commands("warren")
        assert serve == "serve"
        engine = [one.replace("rabbit1,rabbit2,rabbit3", ",".join(nodes)) for one in engine]
        engine += ["--engine-management", ",".join(one.management_url for one in self.nodes)]
        super().__init__(dev=True, args=[*engine, *args], command=command, timeout_s=START_S)

    @property
    def amqp_url(self) -> str:
        return next(one for one in self.nodes if one.running).amqp_url
