"""The servers that other tests stand on start, answer and leave nothing behind."""

from __future__ import annotations

import contextlib
import gc
import os
import socket
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pika
import pytest

from tests.support.http import Answer, Callback
from tests.support.other_hub import OtherHub
from tests.support.ports import accepts, free_port
from tests.support.process import wait_until
from tests.support.rabbitmq import RabbitMQServer
from tests.support.server import WarrenServer

STAND_IN = """
import os, signal, sys
def stop(number, frame):
    sys.exit(3)
signal.signal(signal.SIGTERM, stop)
print(" ".join(sys.argv[1:]))
print(sorted(name for name in os.environ if name.startswith("WARREN_")))
print("ready")
signal.pause()
"""


def stand_in(directory: Path, text: str = STAND_IN) -> list[str]:
    script = directory / "stand_in.py"
    script.write_text(text)
    return [sys.executable, str(script)]


def test_server_waits_for_ready_and_gives_the_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARREN_HOST", "from outside")
    command = stand_in(tmp_path)
    with WarrenServer(command=command, env={"WARREN_A": "1"}, args=["--b"]) as server:
        assert "ready" in server.output()
        assert f"--amqp-port {server.amqp_port} " in server.output()
        assert server.output().splitlines()[0].endswith("--dev --b")
        assert "['WARREN_A']" in server.output()
        first = server.pid
        server.restart()
        assert server.pid != first
        assert server.stop() == 3
        assert not server.running
    assert not server.data.exists()


def test_server_that_does_not_get_ready_shows_why(tmp_path: Path) -> None:
    command = stand_in(tmp_path, "raise SystemExit('no such flag')")
    with pytest.raises(RuntimeError, match="no such flag"), WarrenServer(command=command):
        pass


def test_killed_server_is_gone(tmp_path: Path) -> None:
    with WarrenServer(command=stand_in(tmp_path)) as server:
        server.kill()
        assert not server.running


def test_no_other_process_gets_a_port_that_is_reserved() -> None:
    """A server that is being restarted does not listen on its port for a moment."""
    script = (
        "from tests.support import ports\n"
        f"ports.FIRST_PORT = ports.LAST_PORT = {free_port()}\n"
        "print(ports.free_port())"
    )
    other = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "no free port between" in other.stderr, other


def test_callback_echoes_the_challenge_and_follows_its_script() -> None:
    with Callback() as callback:
        verification = httpx.get(callback.url, params={"hub.challenge": "abc", "a": "1"})
        callback.script(503, Answer(410, {"X-Reason": "over"}, b"gone"))
        answers = [httpx.post(callback.url, content=body) for body in (b"1", b"2", b"3")]
        assert verification.text == "abc"
        assert [answer.status_code for answer in answers] == [503, 410, 200]
        assert answers[1].headers["x-reason"] == "over"
        assert [request.body for request in callback.wait(3)] == [b"1", b"2", b"3"]
        assert callback.wait_verifications(1)[0].query["a"] == "1"


def test_callback_can_refuse_and_its_wait_is_bounded(callback: Callback) -> None:
    callback.refusal = Answer(404)
    assert httpx.get(callback.url, params={"hub.challenge": "abc"}).status_code == 404
    with pytest.raises(TimeoutError, match="delivery 1"):
        callback.wait(1, timeout_s=0.05)


def test_callback_that_hangs_lets_go_when_it_closes() -> None:
    with Callback() as callback:
        callback.script(Answer(hang=True))
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(callback.url, timeout=0.05)
        callback.wait(1)
    assert not accepts(callback.port)


@pytest.mark.parametrize("make", [Callback, OtherHub])
def test_a_server_that_closes_leaves_no_connection_half_taken(
    make: type[Callback | OtherHub],
) -> None:
    connected: list[socket.socket] = []
    with warnings.catch_warnings(record=True) as found, ThreadPoolExecutor() as threads:
        warnings.simplefilter("always")
        for _ in range(2):
            with make() as server:
                end = len(connected) + 20
                knocking = threads.submit(_knock, server.port, connected)
                wait_until(lambda: len(connected) > end or knocking.done(), 10.0, "visitors")  # noqa: B023
            knocking.result()
        gc.collect()
    for one in connected:
        one.close()
    assert [str(one.message) for one in found] == []


def _knock(port: int, connected: list[socket.socket]) -> None:
    """Connects, until nobody listens any more."""
    with contextlib.suppress(ConnectionError):
        while True:
            connected.append(socket.create_connection(("127.0.0.1", port), 10.0))


def test_rabbitmq_carries_a_message(rabbitmq: RabbitMQServer) -> None:
    with pika.BlockingConnection(pika.URLParameters(rabbitmq.amqp_url)) as connection:
        channel = connection.channel()
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.basic_publish("", queue, b"hello")
        consumed = channel.consume(queue, auto_ack=True, inactivity_timeout=10)
        assert next(consumed)[2] == b"hello"


def test_waiting_has_an_end() -> None:
    with pytest.raises(TimeoutError, match="the end of time did not happen"):
        wait_until(lambda: False, 0.05, "the end of time")


@pytest.mark.parametrize("ci", ["", "true"])
@pytest.mark.parametrize(
    "text",
    [
        "import pytest\ndef test_one(): pytest.skip('no such program')\ndef test_two(): pass",
        "import pytest\npytest.skip('no such program', allow_module_level=True)",
    ],
)
def test_skipping_is_a_failure_where_ci_is_set(tmp_path: Path, text: str, ci: str) -> None:
    (tmp_path / "test_one.py").write_text(text)
    (tmp_path / "test_two.py").write_text("def test_three(): pass")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-c", os.devnull, tmp_path],
        cwd=Path(__file__).parents[1],
        env={**os.environ, "CI": ci},
        capture_output=True,
        text=True,
    )
    assert bool(done.returncode) == bool(ci), done.stdout
    assert ("no such program" in done.stdout) == bool(ci)
