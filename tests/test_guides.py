"""docs/guides: what they take over from other servers is here afterwards."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pika
import pytest
from standardwebhooks.webhooks import Webhook

from tests.clients.blocks import SHOWN, write_files
from tests.support.http import Callback
from tests.support.process import wait_until
from tests.support.rabbitmq import RabbitMQServer
from tests.support.server import WarrenServer

GUIDES = Path(__file__).parents[1] / "docs" / "guides"
JSON = re.compile(r"^```json\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
LIMIT_S = 60.0
Run = Callable[..., str]

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def run(warren: WarrenServer, tmp_path: Path) -> Run:
    """Runs a file of the guide in the test's directory, with what is installed here."""
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "WARREN_URL": warren.http_url}

    def run(program: str, *arguments: str) -> str:
        tool = [sys.executable] if program.endswith(".py") else ["bash", "-eu"]
        done = subprocess.run(
            [*tool, program, *arguments], cwd=tmp_path, env=environment,
            capture_output=True, text=True, timeout=LIMIT_S,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture
def http(warren: WarrenServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=warren.http_url, auth=("guest", "guest"), timeout=LIMIT_S) as http:
        yield http


def test_from_rabbitmq(
    rabbitmq: RabbitMQServer, warren: WarrenServer, run: Run, tmp_path: Path
) -> None:
    replaced = {
        "rabbit.example:15672": f"{rabbitmq.host}:{rabbitmq.management_port}",
        "rabbit.example:5672": f"{rabbitmq.host}:{rabbitmq.port}",
        "localhost:5672": f"{warren.host}:{warren.amqp_port}",
    }
    write_files([GUIDES / "from-rabbitmq.md"], tmp_path, replaced)
    with pika.BlockingConnection(pika.URLParameters(rabbitmq.amqp_url)) as connection:
        channel = connection.channel()
        channel.queue_declare("unsold", durable=True, arguments={"x-max-priority": 5})
        channel.queue_bind("unsold", "amq.topic", "eu.#")
        kept = pika.BasicProperties(delivery_mode=2, priority=3, headers={"reason": "late"})
        channel.confirm_delivery()
        channel.basic_publish("amq.topic", "eu.fr", b"one", kept)
        channel.basic_publish("", "unsold", b"two")

    run("export.sh")
    assert "unsold" in run("import.sh")
    assert run("move.py", "unsold") == "moved all of unsold\n"

    with pika.BlockingConnection(pika.URLParameters(warren.amqp_url)) as connection:
        channel = connection.channel()
        _, properties, body = channel.basic_get("unsold", auto_ack=True)
        assert (body, properties.priority, properties.headers) == (b"one", 3, {"reason": "late"})
        assert channel.basic_get("unsold", auto_ack=True)[2] == b"two"
        channel.basic_publish("amq.topic", "eu.de", b"three")
        assert channel.basic_get("unsold", auto_ack=True)[2] == b"three"


def test_from_rabbithub(
    warren: WarrenServer, http: httpx.Client, callback: Callback, run: Run, tmp_path: Path
) -> None:
    guide = GUIDES / "from-rabbithub.md"
    write_files([guide], tmp_path, {"15672": str(warren.http_port)})
    (exported,) = JSON.findall(guide.read_text())
    (tmp_path / "subscriptions.json").write_text(exported.replace(":9000", f":{callback.port}"))
    http.put("/endpoint/x/news", params={"amqp.exchange_type": "topic"}).raise_for_status()

    (result,) = json.loads(run("import.sh"))["rabbithub_batch_results"]
    assert "error" not in result
    callback.wait_verifications(1, LIMIT_S)

    def active() -> bool:
        listed = http.get("/subscriptions").json()["subscriptions"]
        return [one["status"] for one in listed] == ["active"]

    wait_until(active, LIMIT_S, "the subscription is active")
    http.post("/endpoint/x/news", params={"hub.topic": "eu.fr"}, content=b"bonjour")
    assert callback.wait(1, LIMIT_S)[0].raw_path == "/news?hub.topic=eu.fr"


def test_from_svix(warren: WarrenServer, callback: Callback, run: Run, tmp_path: Path) -> None:
    guide = GUIDES / "from-svix.md"
    write_files([guide], tmp_path, {"15672": str(warren.http_port)})
    (exported,) = JSON.findall(guide.read_text())
    (tmp_path / "endpoints.json").write_text(exported.replace(":9000", f":{callback.port}"))
    secrets = {one["url"].rpartition("/")[2]: one["secret"] for one in json.loads(exported)}

    (shown,) = SHOWN.findall(guide.read_text())
    assert run("subscribe.py") == shown.replace(":9000", f":{callback.port}")
    run("publish.sh")

    delivered = callback.wait(2, LIMIT_S)
    assert {one.path for one in delivered} == {"/acme", "/all"}
    for one in delivered:
        verifier = Webhook(secrets[one.path[1:]])
        assert verifier.verify(one.body, dict(one.headers))["data"] == {"id": 7}
    assert callback.verifications == []
