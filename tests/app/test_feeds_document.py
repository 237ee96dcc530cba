"""The blocks of docs/feeds.md, pasted in their order, do what it says."""

from __future__ import annotations

import code
import io
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.ports import free_port
from tests.support.server import WarrenServer

DOCUMENT = (Path(__file__).parents[2] / "docs/feeds.md").read_text()
TIMEOUT_S = 60.0


class Block(NamedTuple):
    """What is pasted, into a shell or into Python, and what it prints if the document says so."""

    line: int
    fence: str
    text: str
    shown: str | None


def blocks() -> Iterator[Block]:
    fences = re.compile(r"^```(sh|python)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.M | re.S)
    for found in fences.finditer(DOCUMENT):
        yield Block(DOCUMENT.count("\n", 0, found.start()) + 2, *found.groups())


class User:
    """Pastes blocks in a directory, with the ports of this run."""

    def __init__(self, directory: Path, server: WarrenServer) -> None:
        self._directory = directory
        self._ports = {
            "15672": str(server.http_port), "5672": str(server.amqp_port),
            "8000": str(free_port()), "8001": str(free_port()),
        }  # fmt: skip
        self._python = code.InteractiveConsole()
        scripts = str(Path(sys.executable).parent)
        self._environment = os.environ | {"PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}

    def paste(self, block: Block) -> str:
        text = self._replaced(block.text, self._ports)
        printed = self._shell(text) if block.fence == "sh" else self._run(text)
        return self._replaced(printed, {there: port for port, there in self._ports.items()})

    def _replaced(self, text: str, ports: dict[str, str]) -> str:
        return re.sub(r"\b\d{4,5}\b", lambda found: ports.get(found[0], found[0]), text)

    def _run(self, text: str) -> str:
        with redirect_stdout(io.StringIO()) as printed:
            exec(text, self._python.locals)
        return printed.getvalue()

    def _shell(self, text: str) -> str:
        done = subprocess.run(
            ["bash", "-euc", text], cwd=self._directory, capture_output=True, text=True,
            timeout=TIMEOUT_S, env=self._environment,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.mark.timeout(180)
def test_walk_through(warren: WarrenServer, tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    user = User(tmp_path, warren)
    try:
        for block in blocks():
            try:
                printed = user.paste(block)
            except Exception as error:
                error.add_note(f"in docs/feeds.md, line {block.line}:\n{block.text}")
                raise
            if block.shown is not None:
                assert printed == block.shown, f"docs/feeds.md, line {block.line}"
    finally:
        for path in tmp_path.glob("*.pid"):
            with suppress(ProcessLookupError):  # the last block has ended it
                os.kill(int(path.read_text()), signal.SIGTERM)
