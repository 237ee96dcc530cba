"""F10, F11: backlogs many times the memory, and publishers that do not read their confirms."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.support import MIB, forget_peak, peak_bytes
from tests.support.server import WarrenServer, warren_command

from .support import Sender, drain, numbers

pytestmark = pytest.mark.promise

LIMIT = 16 * MIB
SIZE = 8_000
COUNT = 10 * LIMIT // SIZE
SLACK = 32 * MIB
"""Read-ahead, write buffers, and what the allocator keeps."""


def test_a_backlog_is_many_times_the_memory(tmp_path: Path) -> None:
    args = ["--memory-limit", "16MiB"]
    with WarrenServer(data=tmp_path / "data", args=args, command=warren_command()) as server:
        before = forget_peak(server)
        with Sender(server, "q", size=SIZE) as sender:
            assert len(sender.publish(COUNT, at_once=200).confirmed) == COUNT
        assert peak_bytes(server) - before < LIMIT + SLACK
        server.kill()
        server.start()
        before = forget_peak(server)
        assert numbers(drain(server, "q")) == list(range(COUNT))
        assert peak_bytes(server) - before < LIMIT + SLACK


def test_confirms_that_nobody_reads_are_bounded(server: WarrenServer) -> None:
    with Sender(server, "q", size=20) as deaf, Sender(server, "other") as other:
        before = forget_peak(server)
        for _ in range(100):
            deaf.send(1_000)
        other.publish(1_000)
        assert peak_bytes(server) - before < 64 * MIB
        assert len(deaf.wait().confirmed) == 100_000
