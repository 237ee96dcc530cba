"""The processes of a real server: it answers while they start and work, and none outlives it."""

from __future__ import annotations

import gzip
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.hub.topics.test_crash import hub, topics
from tests.support.http import Answer, Callback
from tests.support.process import wait_until
from tests.support.server import WarrenServer, warren_command

HOSTILE = b'{"version":"https://jsonfeed.org/version/1","items":[' + b"0," * 5_000_000 + b"0]}"
STARTER, WORKER = b"processes/main.py", b"workers.main"


@pytest.fixture(autouse=True)
def with_proc() -> None:
    if not Path("/proc/self/stat").exists():
        pytest.skip("the children of a process are not to be seen here")


def children(pid: int) -> Iterator[int]:
    """Running ones; those that have ended and are not waited for yet do not count."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has just ended
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
            if int(parent) == pid and state != "Z":
                yield int(stat.parent.name)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def child(parent: int, program: bytes) -> int:
    """Returns the child that runs a program, when there is one: until then a child's command line
    is that of its parent."""
    found: list[int] = []

    def look() -> bool:
        for pid in children(parent):
            with suppress(OSError):  # it has just ended
                if program in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(pid)
        return bool(found)

    wait_until(look, 30.0, f"a process {program!r}")
    return found[0]


def starter_of(server: WarrenServer) -> int:
    return child(server.pid, STARTER)


def working(server: WarrenServer) -> int:
    """Returns the process that reads a document, when there is one."""
    return child(starter_of(server), WORKER)


def test_the_server_answers_while_a_process_starts(callback: Callback) -> None:
    with Callback() as publisher, WarrenServer(command=warren_command()) as server:
        publisher.default = Answer(headers={"Content-Type": "text/plain"}, body=b"1")
        starter = starter_of(server)
        os.kill(starter, signal.SIGSTOP)
        assert hub(server, mode="subscribe", topic=publisher.url, callback=callback.url) == 202
        wait_until(lambda: bool(publisher.requests), 30.0, "a request for the document")
        assert httpx.get(f"{server.http_url}/health/ready").status_code == 200
        os.kill(starter, signal.SIGCONT)
        callback.wait(1, 30.0)


def test_the_server_answers_while_a_hostile_document_is_read(callback: Callback) -> None:
    body = gzip.compress(HOSTILE)
    assert len(body) < 15_000 and len(HOSTILE) > 10_000_000
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    with Callback() as publisher, WarrenServer(command=warren_command()) as server:
        publisher.default = Answer(headers=headers, body=body)
        assert hub(server, mode="subscribe", topic=publisher.url, callback=callback.url) == 202
        worker = working(server)
        os.kill(worker, signal.SIGSTOP)  # what it reads is not read before it goes on
        assert httpx.get(f"{server.http_url}/health/ready").status_code == 200
        [topic] = topics(server)
        assert topic["notice"] == "" and topic["due_at"] is not None
        os.kill(worker, signal.SIGCONT)
        [delivery] = callback.wait(1, 60.0)
        assert delivery.body == HOSTILE
        why = "more than 256 MiB of memory"  # stored after the delivery
        wait_until(lambda: why in topics(server)[0]["notice"], 30.0, "the notice")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_none_outlives_the_server(callback: Callback, how: signal.Signals) -> None:
    with Callback() as publisher, WarrenServer(command=warren_command()) as server:
        publisher.default = Answer(headers={"Content-Type": "text/plain"}, body=b"1")
        assert hub(server, mode="subscribe", topic=publisher.url, callback=callback.url) == 202
        callback.wait(1, 30.0)
        starter, worker = starter_of(server), working(server)
        if how is signal.SIGKILL:
            os.kill(worker, signal.SIGSTOP)  # it can't look whether the server is there
            server.kill()
        else:
            server.stop()
        wait_until(lambda: not is_running(worker), 30.0, "the end of the worker process")
        wait_until(lambda: not is_running(starter), 30.0, "the end of the process that starts it")
