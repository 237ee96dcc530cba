"""Ports are reserved for one process, and nothing is skipped in continuous integration."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.forks.fork_server import STARTERS, ForkServer
from tests.support.ports import free_port
from tests.support.process import terminate
from tests.support.server import WarrenServer

WAIT_S = 60


def test_no_other_process_gets_a_port_that_is_reserved() -> None:
    """A server that is being restarted does not listen on its port for a moment."""
    script = (
        "from tests.support import ports\n"
        f"ports.FIRST_PORT = ports.LAST_PORT = {free_port()}\n"
        "print(ports.free_port())"
    )
    other = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "no free port between" in other.stderr, other


def test_a_server_that_ignores_sigterm_shows_what_it_does() -> None:
    script = (
        "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "def stuck():\n    print('ready', flush=True)\n    while True: signal.pause()\nstuck()"
    )
    with WarrenServer(command=[sys.executable, "-c", script]) as server:
        with pytest.raises(TimeoutError, match=r"(?s)ready.*Current thread.*in stuck"):
            terminate(server.process, 0.1, server.output)
        assert not server.running


def test_copies_are_made_after_the_process_that_is_copied_was_killed() -> None:
    forks = ForkServer("main", others=STARTERS)
    for _ in range(2):
        assert forks.run(["--version"], os.environ, "", WAIT_S).returncode == 0
        assert forks.process is not None
        forks.process.kill()


@pytest.mark.parametrize("ci", ["", "true"])
def test_skipping_is_a_failure_where_ci_is_set(tmp_path: Path, ci: str) -> None:
    texts = (
        "import pytest\ndef test_one(): pytest.skip('no such program')\ndef test_two(): pass",
        "import pytest\npytest.skip('no such library', allow_module_level=True)",
        "def test_three(): pass",
    )
    for number, text in enumerate(texts):
        (tmp_path / f"test_{number}.py").write_text(text)
    options = ["-p", "tests.conftest", "-c", os.devnull, "--continue-on-collection-errors"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, tmp_path],
        cwd=Path(__file__).parents[1],
        env={**os.environ, "CI": ci},
        capture_output=True,
        text=True,
    )
    assert bool(done.returncode) == bool(ci), done.stdout
    assert all((f"no such {what}" in done.stdout) == bool(ci) for what in ("program", "library"))
