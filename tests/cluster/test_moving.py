"""From one machine to a cluster as docs/scaling.md says: without a gap, and nothing is lost."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.webhooks import WAIT_S, Site
from tests.support.http import Answer, Callback
from tests.support.hub_on_rabbitmq import PAGE, HubOnRabbitMQ, prepare
from tests.support.process import wait_until
from tests.support.rabbitmq import RabbitMQServer, missing
from tests.support.server import WarrenServer

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.promise,
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
]
BLOCK = re.compile(r"^    ```sh\n(.*?)^    ```", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def node() -> Iterator[RabbitMQServer]:
    with RabbitMQServer("rabbitmq_management", "rabbitmq_shovel") as node:
        prepare(node)
        yield node


def test_a_hub_moves(node: RabbitMQServer, callback: Callback, tmp_path: Path) -> None:
    """What waits at the old hub is delivered from there, what is new from the new one, and a shovel
    brings the messages of a queue. The subscription is the same one."""
    text = PAGE.read_text().partition("## Moving there")[2]
    copying, shovel = map(textwrap.dedent, BLOCK.findall(text))
    work, news = "q/work", "x/news"
    with WarrenServer() as server, Site(server) as old:
        assert old.http.put(f"/endpoint/{work}").status_code == 201
        topic = {"amqp.exchange_type": "topic"}
        assert old.http.put(f"/endpoint/{news}", params=topic).status_code == 201
        old.subscribe(news, callback)
        callback.script(Answer(500, {"Retry-After": "5"}))
        old.publish(news, b"before")
        callback.wait(1)
        for number in range(20):
            old.publish(work, b"%d" % number)
        run(copying, server, tmp_path)
        node.ctl("import_definitions", str(tmp_path / "definitions.json"))
        _, *arguments = shlex.split(shovel.replace("@old", f"@{server.host}:{server.amqp_port}"))
        node.ctl(*arguments)
        with HubOnRabbitMQ(node, ["--data", str(tmp_path / "new")]) as hub, Site(hub) as new:
            new.publish(news, b"after")
            callback.wait(3)
            wait_until(lambda: new.depth(work) == 20, WAIT_S, "what the shovel brings")
            assert new.taken(work)[2] == b"0"
            (here,), (there,) = old.listed(callback), new.listed(callback)
            assert here["id"] == there["id"]
    bodies = [one.body for one in callback.deliveries]
    assert sorted(bodies) == [b"after", b"before", b"before"]


def run(script: str, server: WarrenServer, directory: Path) -> None:
    """Runs the commands as they stand, with paths of the test."""
    script = script.replace("/backup", str(directory / "backup"))
    script = script.replace("/var/lib/new", str(directory / "new"))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "WARREN_URL": server.http_url}
    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", script], cwd=directory, env=environment,
        capture_output=True, text=True, timeout=WAIT_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
