"""The process that starts the server's child processes: what it says, and when it was killed."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from warrenmq.hub.processes.starter import ProcessStarter


@pytest.mark.skipif(sys.platform == "darwin", reason="waitid is not to be had there")
async def test_a_starter_that_was_killed_is_replaced() -> None:
    with ProcessStarter() as starter:
        killed = starter.pid
        os.kill(killed, signal.SIGKILL)
        os.waitid(os.P_PID, killed, os.WEXITED | os.WNOWAIT)
        process = await starter.start("base64", "-")
        assert await process.communicate(b"text") == b"dGV4dA==\n"
        assert process.returncode == 0 and starter.pid != killed


async def test_a_program_that_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    with ProcessStarter() as starter:
        monkeypatch.setattr(sys, "executable", "/no/python")
        with pytest.raises(OSError, match="No such file or directory: '/no/python'"):
            await starter.start("base64")
