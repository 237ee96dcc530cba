"""`warren backup` of a server under load, and `warren restore`."""

from __future__ import annotations

import errno
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pika
import pytest

from tests.support.http import Callback
from tests.support.process import wait_until
from tests.support.server import WarrenServer
from warrenmq.app.cli import run

GUEST = ("guest", "guest")
WAIT_S = 30
ENOUGH = 200
PERSISTENT = pika.BasicProperties(delivery_mode=2)


class Load:
    """Publishes numbers to `work`, one by one, and rejects what comes from there into `dead`."""

    def __init__(self, url: str) -> None:
        self.confirmed = self.rejected = 0
        self._url = url
        self._ended = threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        threads = [threading.Thread(target=one) for one in (self._publish, self._reject)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._ended.set()
            for thread in threads:
                thread.join()

    def _publish(self) -> None:
        with pika.BlockingConnection(pika.URLParameters(self._url)) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            while not self._ended.is_set():
                channel.basic_publish("", "work", b"%d" % self.confirmed, PERSISTENT)
                self.confirmed += 1

    def _reject(self) -> None:
        with pika.BlockingConnection(pika.URLParameters(self._url)) as connection:
            channel = connection.channel()
            channel.basic_qos(prefetch_count=10)
            for method, _, _ in channel.consume("work", inactivity_timeout=0.05):
                if self._ended.is_set():
                    break
                if method is not None and method.delivery_tag % 2:
                    channel.basic_reject(method.delivery_tag, requeue=False)
                    self.rejected += 1
                elif method is not None:
                    channel.basic_nack(method.delivery_tag, requeue=True)


def declare(url: str) -> None:
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        channel.queue_declare("dead", durable=True)
        arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
        channel.queue_declare("work", durable=True, arguments=arguments)


def drained(url: str, queue: str) -> list[int]:
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        bodies = iter(lambda: channel.basic_get(queue, auto_ack=True)[2], None)
        return [int(body) for body in bodies]


def test_a_backup_under_load_has_all_that_was_confirmed(
    tmp_path: Path, callback: Callback, no_login: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    backup, restored = tmp_path / "backup", tmp_path / "restored"
    with WarrenServer() as server:
        declare(server.amqp_url)
        form = {"hub.mode": "subscribe", "hub.callback": callback.url, "hub.secret": "s" * 32}
        url = f"{server.http_url}/subscribe/x/amq.topic"
        httpx.post(url, data={**form, "hub.topic": "#"}, auth=GUEST).raise_for_status()
        load = Load(server.amqp_url)
        with load.running():
            wait_until(lambda: min(load.confirmed, load.rejected) > ENOUGH, WAIT_S, "some load")
            confirmed = load.confirmed
            assert run(["backup", str(backup), "--url", server.http_url]) == 0
        httpx.post(f"{server.http_url}/endpoint/q/work", content="late", auth=GUEST)
        assert httpx.get(f"{server.http_url}/api/warren/snapshots", auth=GUEST).json() == []
        assert [*(server.data / "snapshots").iterdir()] == []
    capsys.readouterr()
    assert run(["restore", str(backup), "--data", str(restored), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"] > 2
    with WarrenServer(data=restored) as server:
        work, dead = drained(server.amqp_url, "work"), drained(server.amqp_url, "dead")
        found = sorted(work + dead)
        assert found == list(range(len(found))), "none is missing, none is there twice"
        assert len(found) >= confirmed and len(dead) > ENOUGH
        httpx.post(f"{server.http_url}/endpoint/x/amq.topic", content="hi", auth=GUEST)
        [delivery] = callback.wait(1)
        assert delivery.headers["X-Hub-Signature"], "the key of its secret was copied too"


@pytest.fixture(scope="module")
def made(warren: WarrenServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("made") / "backup"
    assert run(["backup", str(target), "--url", warren.http_url]) == 0
    return target


def test_what_can_not_be_backed_up(
    warren: WarrenServer, made: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    url = ("--url", warren.http_url)
    assert run(["backup", str(made), *url]) == 2
    assert "has files, such as 'backup.json'" in capsys.readouterr().err
    httpx.put(f"{warren.http_url}/api/users/ada", json={"password": "a", "tags": "monitoring"},
        auth=GUEST)  # fmt: skip
    assert run(["backup", str(tmp_path / "b"), *url, "--user", "ada", "--password", "a"]) == 4
    path = f"{warren.http_url}/api/warren/snapshots"
    for method, name in (("GET", ""), ("POST", ""), ("DELETE", "/some")):
        assert httpx.request(method, path + name, auth=("ada", "a")).status_code == 403
    ids = [httpx.post(path, auth=GUEST).json()["id"] for _ in range(3)]
    assert run(["backup", str(tmp_path / "b"), *url]) == 4
    assert "there are 3 snapshots" in capsys.readouterr().err
    assert [httpx.delete(f"{path}/{one}", auth=GUEST).status_code for one in ids] == [204] * 3
    assert httpx.delete(f"{path}/{ids[0]}", auth=GUEST).status_code == 404


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device"),
        (PermissionError(errno.EACCES, "Permission denied", "/a"), "Permission denied (/a)"),
    ],
)
def test_a_backup_that_fails_on_the_way(
    warren: WarrenServer,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    error: OSError,
    reason: str,
) -> None:
    def fail(_: int) -> None:
        raise error

    monkeypatch.setattr(os, "fsync", fail)
    assert run(["backup", str(tmp_path / "b"), "--url", warren.http_url]) == 2
    expected = f"the backup failed: {reason}; remove what it has left there\n"
    assert capsys.readouterr().err.endswith(expected)
    assert httpx.get(f"{warren.http_url}/api/warren/snapshots", auth=GUEST).json() == []


def test_what_can_not_be_restored(
    made: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    data = tmp_path / "data"
    [log] = (made / "log").glob("*.log")
    raw = log.read_bytes()
    log.write_bytes(raw[:-1] + b"?")
    assert run(["restore", str(made), "--data", str(data)]) == 2
    assert f"{log} is damaged" in capsys.readouterr().err
    assert [path.name for path in data.iterdir()] == ["lock"]
    log.write_bytes(raw)
    assert run(["restore", str(made), "--data", str(data)]) == 0, "a new attempt begins anew"
    assert run(["restore", str(made), "--data", str(data)]) == 2
    assert "has files, such as " in capsys.readouterr().err
    assert run(["restore", str(tmp_path), "--data", str(tmp_path / "other")]) == 2
    assert "not a complete backup" in capsys.readouterr().err


def test_a_snapshot_that_can_not_be_removed_stays_in_the_list() -> None:
    with WarrenServer() as server, httpx.Client(base_url=server.http_url, auth=GUEST) as http:
        snapshots = "/api/warren/snapshots"
        made = http.post(snapshots, timeout=WAIT_S).json()
        folder = Path(made["directory"])
        kept = folder.rename(folder.with_name("kept"))
        folder.touch()
        refused = http.delete(f"{snapshots}/{made['id']}")
        assert (refused.status_code, f"{folder} can't be removed" in refused.text) == (409, True)
        assert [one["id"] for one in http.get(snapshots).json()] == [made["id"]]
        folder.unlink()
        kept.rename(folder)
        assert http.delete(f"{snapshots}/{made['id']}").status_code == 204
        assert (http.get(snapshots).json(), folder.exists()) == ([], False)
        folder.parent.rmdir()
        folder.parent.touch()  # A start goes on without its removal, and says so.
        server.restart()
        assert f"{folder.parent} of an earlier process can't be removed" in server.output()
