"""RabbitMQ's `rabbitmqadmin` sets and lists users, permissions and policies over a restart."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.support.server import WarrenServer

from .management import QUEUE, add_queue
from .support import WAIT_S

TOOL = shutil.which("rabbitmqadmin")

pytestmark = pytest.mark.skipif(TOOL is None, reason="rabbitmqadmin is not installed")

DECLARED: list[list[str]] = [
    ["vhost", "name=a/b", "tracing=false"],
    ["user", "name=ann", "password=secret", "tags=management,monitoring"],
    ["permission", "vhost=a/b", "user=ann", "configure=^t", "write=", "read=.*"],
    [
        "policy", "name=p", "pattern=^mail", 'definition={"max-length": 5}', "priority=4",
        "apply-to=queues",
    ],
    ["operator_policy", "name=o", "pattern=^mail", 'definition={"expires": 5000}'],
    ["vhost_limit", "vhost=a/b", "name=max-queues", "value=5"],
]  # fmt: skip


class Admin:
    """Runs the tool; raises what it complains about."""

    def __init__(self, warren: WarrenServer) -> None:
        self._port = str(warren.http_port)

    def __call__(self, *arguments: str) -> str:
        assert TOOL is not None
        whole = [sys.executable, TOOL, "-H", "127.0.0.1", "-P", self._port, *arguments]
        done = subprocess.run(whole, capture_output=True, text=True, timeout=WAIT_S)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return done.stdout

    def rows(self, sort: str, *columns: str) -> list[str]:
        return self("--format", "tsv", "list", sort, *columns).splitlines()[1:]


def test_declared_listed_and_deleted(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with WarrenServer(data=data) as warren:
        admin = Admin(warren)
        for words in DECLARED:
            admin("declare", *words)
    with WarrenServer(data=data) as warren:
        check(Admin(warren))
        with httpx.Client(base_url=f"http://127.0.0.1:{warren.http_port}") as http:
            response = http.get("/api/whoami", auth=("ann", "secret"))
            assert response.json() == {"name": "ann", "tags": ["management", "monitoring"]}


def check(admin: Admin) -> None:
    assert admin.rows("vhosts", "name") == ["/", "a/b"]
    assert admin.rows("users", "name", "tags") == [
        "guest\tadministrator", "ann\tmanagement monitoring",
    ]  # fmt: skip
    assert "a/b\tann\t^t\t\t.*" in admin.rows(
        "permissions", "vhost", "user", "configure", "write", "read"
    )
    columns = ("vhost", "name", "pattern", "definition", "priority", "apply-to")
    assert admin.rows("policies", *columns) == ['/\tp\t^mail\t{"max-length": 5}\t4\tqueues']
    assert admin.rows("operator_policies", *columns) == ['/\to\t^mail\t{"expires": 5000}\t0\tall']
    assert admin.rows("vhost_limits", "vhost", "value") == ['a/b\t{"max-queues": 5}']
    with pytest.raises(RuntimeError, match="policy 'q' in vhost '/': pattern: pattern '\\('"):
        admin("declare", "policy", "name=q", "pattern=(", 'definition={"max-length": 5}')
    admin("delete", "policy", "name=p")
    admin("delete", "operator_policy", "name=o")
    admin("delete", "permission", "vhost=a/b", "user=ann")
    admin("delete", "vhost_limit", "vhost=a/b", "name=max-queues")
    admin("delete", "vhost", "name=a/b")
    assert admin.rows("policies") == admin.rows("vhost_limits") == []
    with pytest.raises(RuntimeError, match="Not found: /api/users/nobody"):
        admin("delete", "user", "name=nobody")


def test_messages_and_definitions(warren: WarrenServer, tmp_path: Path) -> None:
    add_queue(warren)
    admin = Admin(warren)
    assert admin.rows("nodes", "running") == ["True"]
    assert "3.13" in admin("show", "overview")
    properties = json.dumps({"delivery_mode": 2, "message_id": "m"})
    publish = ("publish", f"routing_key={QUEUE}", "payload=hello", f"properties={properties}")
    assert "NOT routed" not in admin(*publish)
    assert "NOT routed" in admin("publish", "routing_key=nowhere", "payload=hello")
    for mode in ("ack_requeue_true", "ack_requeue_false"):
        found = admin("--format", "raw_json", "get", f"queue={QUEUE}", f"ackmode={mode}")
        (message,) = json.loads(found)
        assert (message["payload"], message["properties"]["message_id"]) == ("hello", "m")
    admin(*publish)
    admin("purge", "queue", f"name={QUEUE}")
    assert json.loads(admin("--format", "raw_json", "get", f"queue={QUEUE}")) == []
    file = tmp_path / "definitions.json"
    admin("export", str(file))
    assert QUEUE in [one["name"] for one in json.loads(file.read_text())["queues"]]
    admin("import", str(file))
    with pytest.raises(RuntimeError, match="component shovel not found"):
        admin("declare", "parameter", "component=shovel", "name=s", 'value={"src-uri": "amqp://"}')
    assert admin.rows("parameters") == []
