"""Requests the server's health fifty times a second, on one connection, until stdin ends.

The request is answered by the server's own loop, so whatever holds that up makes its answer late.
It runs in a process of its own, which the load's threads don't delay. Time in which the server or
the probe was ready to run and another process had the processor is no stall: the kernel counts
it (the second number in /proc/PID/schedstat), and it is taken off.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.bench.client import Address
from tests.bench.measure import percentile

EVERY_S = 0.02
TIMEOUT_S = 60.0
ROOT = Path(__file__).parents[2]
REQUEST = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
READY = "measuring"
HEAD_END = b"\r\n\r\n"


@dataclass(frozen=True)
class Latency:
    """Of the answers in milliseconds; `stall_ms` is the longest without waits for a processor."""

    answers: int = 0
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    max_ms: float = 0.0
    stall_ms: float = 0.0


class Probe:
    """Of the server with that process id; it measures from its making to `stop`.

    Raises `RuntimeError` when it gets no first answer, and at its stop when it got no last one.
    """

    def __init__(self, address: Address, pid: int) -> None:
        where = [address.host, str(address.port), str(pid)]
        command = [sys.executable, "-m", "tests.soak.probe", *where]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            self.stop()

    def stop(self) -> Latency:
        output, _ = self._process.communicate()
        if self._process.returncode:
            raise RuntimeError(f"the probe ended with exit code {self._process.returncode}")
        return Latency(**json.loads(output))


def measure(host: str, port: int, pid: int) -> Latency:
    """Returns at the end of stdin."""
    waited_s: list[float] = []
    stalled_s: list[float] = []
    with socket.create_connection((host, port), timeout=TIMEOUT_S) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _ask(connection)
        print(READY, flush=True)
        due = time.monotonic()
        while not waited_s or not _ended(max(0.0, due - time.monotonic())):
            begun, queued_s = time.monotonic(), _queued_s(pid)
            _ask(connection)
            now = time.monotonic()
            waited_s.append(now - begun)
            stalled_s.append(now - begun - (_queued_s(pid) - queued_s))
            due = max(due + EVERY_S, now)
    in_ms = [round(seconds * 1e3, 1) for seconds in waited_s]
    stall_ms = round(max(0.0, *stalled_s) * 1e3, 1)
    return Latency(len(in_ms), percentile(in_ms, 50), percentile(in_ms, 99), max(in_ms), stall_ms)


def _queued_s(pid: int) -> float:
    """Returns how long the server's loop and this process have waited for a processor so far."""
    return sum(
        int(Path(f"/proc/{one}/task/{one}/schedstat").read_text().split()[1]) / 1e9
        for one in (pid, os.getpid())
    )


def _ended(wait_s: float) -> bool:
    return bool(select.select([sys.stdin], [], [], wait_s)[0])


def _ask(connection: socket.socket) -> None:
    connection.sendall(REQUEST)
    answer = b""
    while HEAD_END not in answer or not answer.endswith(b"}"):
        data = connection.recv(4096)
        if not data:
            raise ConnectionResetError("closed by the server")
        answer += data


if __name__ == "__main__":
    _, host, port, pid = sys.argv
    print(json.dumps(asdict(measure(host, int(port), int(pid)))))
