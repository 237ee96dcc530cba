"""`warren listen`: prints, runs and forwards, goes on after a break, and its exit codes."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.http import Callback
from tests.support.ports import free_port
from tests.support.process import wait_until
from tests.support.server import WarrenServer, warren_command

STREAM = "/endpoint/q/log"
WAIT_S = 60.0

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def http(warren: WarrenServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=warren.http_url, auth=("guest", "guest")) as client:
        client.put(f"{STREAM}?arg.x-queue-type=stream").raise_for_status()
        yield client
        client.delete(STREAM)


@pytest.fixture
def start(warren: WarrenServer) -> Iterator[Start]:
    """Starts the command; all of them are ended."""
    running: list[subprocess.Popen[str]] = []

    def start(*arguments: str, hub: str = warren.http_url) -> subprocess.Popen[str]:
        command = [*warren_command(), "listen", "--url", hub, *arguments]
        pipe = subprocess.PIPE
        running.append(subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True))
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.communicate()


def publish(http: httpx.Client, *bodies: str, path: str = STREAM) -> None:
    for body in bodies:
        headers = {"content-type": "text/plain"}
        http.post(path, content=body, headers=headers).raise_for_status()


def test_prints(http: httpx.Client, start: Start) -> None:
    publish(http, "1", "2\x1b[2J")
    output, _ = start("q", "log", "--cursor", "first", "--count", "2").communicate(timeout=WAIT_S)
    lines = output.splitlines()
    assert [json.loads(line)["body"] for line in lines] == ["1", "2\x1b[2J"]
    assert "\x1b" not in output


def test_since(http: httpx.Client, start: Start) -> None:
    publish(http, "1", "2")
    output, _ = start("q", "log", "--since", "1h", "--count", "2").communicate(timeout=WAIT_S)
    assert [json.loads(line)["body"] for line in output.splitlines()] == ["1", "2"]
    both = start("q", "log", "--since", "1h", "--cursor", "first")
    assert "only one of them" in both.communicate(timeout=WAIT_S)[1]
    http.put("/endpoint/x/unkept?amqp.exchange_type=fanout").raise_for_status()
    unkept = start("x", "unkept", "--since", "1h")
    assert "for a source that keeps its messages, a time" in unkept.communicate(timeout=WAIT_S)[1]


def test_runs_a_command(http: httpx.Client, start: Start, tmp_path: Path) -> None:
    publish(http, "a", "b")
    file = tmp_path / "out"
    command = f'(cat; echo " $WARREN_CONTENT_TYPE") >> {file}; test -z "$(grep b {file})"'
    process = start("q", "log", "--cursor", "first", "--count", "2", "--exec", command)
    _, errors = process.communicate(timeout=WAIT_S)
    assert file.read_text() == "a text/plain\nb text/plain\n"
    assert process.returncode == 1
    assert "the command exited with 1" in errors


def test_forwards(http: httpx.Client, start: Start, callback: Callback) -> None:
    publish(http, "grüße")
    process = start("q", "log", "--cursor", "first", "--count", "1", "--forward", callback.url)
    process.communicate(timeout=WAIT_S)
    assert process.returncode == 0
    (request,) = callback.requests
    assert request.body == "grüße".encode()
    assert request.headers["webhook-id"].startswith("msg_")


def test_listening_resumes_after_a_restart(start: Start) -> None:
    with WarrenServer() as server:
        auth, url = ("guest", "guest"), f"{server.http_url}{STREAM}"
        httpx.put(f"{url}?arg.x-queue-type=stream", auth=auth).raise_for_status()
        httpx.post(url, content="1", auth=auth).raise_for_status()
        process = start("q", "log", "--cursor", "first", "--count", "2", hub=server.http_url)
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["body"] == "1"
        server.restart()
        httpx.post(url, content="2", auth=auth).raise_for_status()
        output, errors = process.communicate(timeout=WAIT_S)
    assert json.loads(output)["body"] == "2"
    assert "connecting again" in errors


def test_keys_and_a_signal(http: httpx.Client, start: Start) -> None:
    http.put("/endpoint/x/listened?amqp.exchange_type=topic").raise_for_status()
    process = start("x", "listened", "--key", "eu.#")

    def has_reader() -> bool:
        path = "/endpoint/x/listened?hub.topic=eu.1&amqp.mandatory=true"
        return http.post(path, content="first").status_code == 202

    wait_until(has_reader, WAIT_S, "it listens")
    publish(http, "other", path="/endpoint/x/listened?hub.topic=us.1")
    publish(http, "last", path="/endpoint/x/listened?hub.topic=eu.2")
    assert process.stdout is not None
    bodies = [json.loads(process.stdout.readline())["body"] for _ in range(2)]
    assert bodies == ["first", "last"]
    process.send_signal(signal.SIGTERM)
    assert process.wait(WAIT_S) == 0


class TestQueues:
    """A message leaves its queue when it was handled, and no earlier."""

    @pytest.fixture(autouse=True)
    def queue(self, http: httpx.Client) -> Iterator[None]:
        http.put("/endpoint/q/jobs").raise_for_status()
        publish(http, *"12345", path="/endpoint/q/jobs")
        yield
        http.delete("/endpoint/q/jobs")

    def left(self, http: httpx.Client, count: int) -> bool:
        """Whether the queue has this many messages, all of them ready."""
        found = http.get("/api/queues/%2F/jobs").json()
        return (found["messages"], found["messages_ready"]) == (count, count)

    def test_those_printed(self, http: httpx.Client, start: Start) -> None:
        output, _ = start("q", "jobs", "--count", "2").communicate(timeout=WAIT_S)
        assert [json.loads(line)["body"] for line in output.splitlines()] == ["1", "2"]
        wait_until(lambda: self.left(http, 3), WAIT_S, "three left")

    def test_those_forwarded(self, http: httpx.Client, start: Start, callback: Callback) -> None:
        """One that failed is tried again before later ones."""
        callback.script(200, 503)
        process = start("q", "jobs", "--count", "4", "--forward", callback.url)
        _, errors = process.communicate(timeout=WAIT_S)
        assert [request.body for request in callback.requests] == [b"1", b"2", b"2", b"3"]
        assert process.returncode == 1
        assert "answered 503" in errors
        wait_until(lambda: self.left(http, 2), WAIT_S, "two left")

    def test_a_break(self, start: Start) -> None:
        with WarrenServer() as server:
            with httpx.Client(base_url=server.http_url, auth=("guest", "guest")) as http:
                http.put("/endpoint/q/jobs").raise_for_status()
                process = start("q", "jobs", "--count", "2", hub=server.http_url)
                for body in "12":
                    publish(http, body, path="/endpoint/q/jobs")
                    assert process.stdout is not None
                    assert json.loads(process.stdout.readline())["body"] == body
                    # A message that is printed but not acknowledged would be printed again.
                    wait_until(lambda: self.left(http, 0), WAIT_S, "acknowledged")
                    if body == "1":
                        server.restart()
            assert process.wait(WAIT_S) == 0


@pytest.mark.parametrize(
    ("arguments", "reason", "code"),
    [
        (["x", "none"], "there is no exchange 'none'", 4),
        (["q", "none"], "there is no queue 'none'", 4),
        (["x", "amq.direct"], "is of type direct", 4),
        (["q", "log", "--password", "wrong"], "wrong user or password", 4),
        (["q", "log", "--token", "wrong"], "the bearer token is unknown", 4),
        (["q", "log", "--exec", "a", "--forward", "http://b"], "only one of them", 2),
        (["q", "log", "--forward", "b"], "give http://HOST:PORT", 2),
        (["y", "log"], "'y' is not one of", 2),
        (["x", "news", "--hub", f"http://127.0.0.1:{free_port()}"], "can't be reached", 5),
    ],
)
def test_bad_arguments_are_refused(
    http: httpx.Client, start: Start, arguments: list[str], reason: str, code: int
) -> None:
    process = start(*arguments)
    _, errors = process.communicate(timeout=WAIT_S)
    assert reason in errors
    assert process.returncode == code
