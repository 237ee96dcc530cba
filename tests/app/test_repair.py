"""`warren repair`, as an operator uses it: a queue's definition was lost, its messages were not."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pika
import pytest

from tests.app.support import warren
from tests.support.process import kill
from tests.support.server import WarrenServer, warren_command
from warrenmq.core.definitions.keys import DefinitionKind, key_of

LASTING = pika.BasicProperties(delivery_mode=2, headers={"n": 1})


@contextmanager
def client(server: WarrenServer) -> Iterator[Any]:
    parameters = pika.ConnectionParameters(server.host, server.amqp_port)
    with pika.BlockingConnection(parameters) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        yield channel


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data of a server that was killed with three confirmed messages in a queue; then the record
    that defines the queue was damaged."""
    data = tmp_path_factory.mktemp("damaged") / "data"
    with WarrenServer(data=data) as server:
        with client(server) as channel:
            for name in ("lost", "sound"):
                channel.queue_declare(name, durable=True)
            channel.queue_bind("lost", "amq.fanout")
            for body in (b"one", b"two", b"\xff"):
                channel.basic_publish("", "lost", body, LASTING)
        kill(server.process)
    for path in (data / "log").glob("*.log"):
        raw = path.read_bytes()
        lost, other = (key_of(DefinitionKind.QUEUE, "/", name) for name in ("lost", "lase"))
        path.write_bytes(raw.replace(lost, other, 1))
    return data


@pytest.fixture
def data(image: Path, tmp_path: Path) -> str:
    return str(shutil.copytree(image, tmp_path / "data"))


def left_over(server: WarrenServer) -> dict[str, Any]:
    found = httpx.get(f"{server.http_url}/api/warren/quarantine", auth=("guest", "guest"))
    assert found.status_code == 200
    listed: dict[str, Any] = found.json()
    return listed


def contents(data: str) -> dict[Path, tuple[int, int]]:
    found = {path: path.stat() for path in Path(data).rglob("*")}
    return {path: (one.st_size, one.st_mtime_ns) for path, one in found.items()}


def test_verify_only_reads(data: str) -> None:
    """On a read-only mount, from which it still notices a server that writes elsewhere."""
    script = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
    private = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    mounted = [*private, "sh", "-c", script, data]
    if shutil.which("unshare") is None or subprocess.run([*mounted, "true"]).returncode:
        pytest.skip("unshare may not mount a file system here")
    before = contents(data)
    verify = [*mounted, *warren_command(), "verify", "--data", data]
    checked = subprocess.run(verify, capture_output=True, text=True)
    assert re.search(r"damaged bytes at offset \d+ will be copied", checked.stderr)
    assert "3 messages in quarantine" in checked.stdout
    assert contents(data) == before
    with WarrenServer(data=Path(data)) as server:
        used = subprocess.run(verify, capture_output=True, text=True)
        assert f"in use by another process (pid {server.process.pid})" in used.stderr


def test_quarantine_is_listed_exported_and_restored(data: str, tmp_path: Path) -> None:
    for _ in range(2):
        with WarrenServer(data=Path(data)) as server, client(server) as channel:
            channel.basic_publish("", "sound", b"served", LASTING)
            listed = left_over(server)
    ((queue_id, count),) = [tuple(held.values()) for held in listed["messages"]]
    assert count == 3
    assert ["there is no queue 'lost'" in text for text in listed["definitions"]] == [True]
    assert len(listed["files"]) == 1

    at = ("--data", data)
    checked = warren("verify", *at)
    assert checked.returncode == 1
    shown = warren("repair", "list", "--data", data)
    told = (
        f"queue id {queue_id}: 3 messages in quarantine, the first to exchange '' with routing "
        "key 'lost'"
    )
    assert shown.stdout.splitlines()[0] == told
    assert told in checked.stdout

    listed_one, *_ = map(json.loads, warren("repair", "list", "--json", *at).stdout.splitlines())
    assert (listed_one["queue_id"], listed_one["messages"]) == (queue_id, 3)
    *_, totals = map(json.loads, warren("verify", "--json", *at).stdout.splitlines())
    assert checked.stdout.endswith(f" {totals['faults']} faults\n") and totals["faults"] == 3

    file = tmp_path / "messages.jsonl"
    exporting = ("repair", "export", str(queue_id), "--data", data, "--file", str(file))
    assert warren(*exporting).stdout == ""
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["payload"] for line in lines] == ["one", "two", "/w=="]
    assert lines[0]["properties"] == {"delivery_mode": 2, "headers": {"n": 1}}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600

    moved = warren("repair", "restore", str(queue_id), "--queue", "lost", "--data", data)
    assert (moved.stdout, moved.stderr) == (
        "3 messages are in queue 'lost' in vhost '/' now\n", "",
    )  # fmt: skip
    assert warren("repair", "list", "--data", data).stdout == "nothing is in quarantine\n"
    with WarrenServer(data=Path(data)) as server, client(server) as channel:
        channel.basic_publish("amq.fanout", "", b"bound", LASTING)
        bodies = [channel.basic_get("lost", auto_ack=True)[2] for _ in range(4)]
        assert bodies == [b"one", b"two", b"\xff", b"bound"]
        assert channel.queue_declare("sound", passive=True).method.message_count == 2


def test_quarantined_messages_are_discarded(data: str) -> None:
    (held, _, *_) = warren("repair", "list", "--data", data).stdout.splitlines()
    queue_id = held.split()[2].rstrip(":")
    for what in (queue_id, "definitions"):
        assert warren("repair", "discard", what, "--data", data).returncode == 0
    assert warren("repair", "list", "--data", data).stdout == "nothing is in quarantine\n"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("export", "5"), "queue id 5 is not in quarantine; queue ids there: "),
        (("discard", "all"), "'all' is neither a queue id, nor 'definitions', nor a file"),
        (("restore", "5", "--queue", "q"), "queue id 5 is not in quarantine; queue ids there: "),
    ],
    ids=str,
)
def test_unknown_ids_are_refused(image: Path, arguments: tuple[str, ...], complaint: str) -> None:
    result = warren("repair", *arguments, "--data", str(image))
    assert result.returncode == 2
    assert result.stderr.splitlines()[-1].startswith(f"warren: {complaint}")


def test_restoring_into_a_stream_or_unknown_vhost_is_refused(data: str) -> None:
    with WarrenServer(data=Path(data)) as server, client(server) as channel:
        channel.queue_declare("s", durable=True, arguments={"x-queue-type": "stream"})
    queue_id = warren("repair", "list", "--data", data).stdout.split()[2].rstrip(":")
    for name, vhost, complaint in (("s", "/", "is a stream"), ("q", "v", "no vhost 'v'")):
        result = warren(
            "repair", "restore", queue_id, "--queue", name, "--vhost", vhost, "--data", data
        )
        assert result.returncode == 2 and complaint in result.stderr
