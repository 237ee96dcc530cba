"""Runs the blocks of a document as somebody pastes them into terminals."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from .ports import free_port
from .process import wait_until

TIMEOUT_S = 30.0


class Ports(Protocol):
    """What examples need to know of a server."""

    http_port: int
    amqp_port: int

    @property
    def http_url(self) -> str: ...


class Terminals:
    """Runs the examples of a text in one directory, with the ports of this run.

    Examples are blocks of `sh`. What one prints is compared with a block of `json` behind it.
    """

    def __init__(self, text: str, directory: Path, server: Ports) -> None:
        self.examples: list[str] = re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S)
        self.shown: dict[str, str] = dict(
            re.findall(r"^```sh\n([^`]*?)^```\n[^`]*?^```json\n(.*?)^```", text, re.M | re.S)
        )
        self.directory = directory
        self.server = server
        self.callback_port = free_port()
        scripts = str(Path(sys.executable).parent)
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("WARREN_")},
            "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
            "WARREN_URL": server.http_url,
        }
        self._stack = ExitStack()

    def example(self, word: str) -> str:
        """The one example that has the word in it."""
        (found,) = [text for text in self.examples if word in text]
        return found

    def run(self, example: str) -> str:
        """Returns what the example prints, once it has ended."""
        done = subprocess.run(
            self._script(example),
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        assert done.returncode == 0, f"{example}\n{done.stdout}{done.stderr}"
        if example in self.shown:
            assert self._as_shown(done.stdout) == self.shown[example]
        return done.stdout

    def start(self, example: str) -> Path:
        """Leaves the example running until `close`; gives the file that it prints to."""
        output = self.directory / f"{self.examples.index(example)}.log"
        self._stack.enter_context(self._running(example, output))
        return output

    def close(self) -> None:
        self._stack.close()

    def _script(self, example: str) -> list[str]:
        ports = {"15672": self.server.http_port, "5672": self.server.amqp_port}
        ports["9000"] = self.callback_port
        text = re.sub(r"\b(15672|5672|9000)\b", lambda found: str(ports[found[0]]), example)
        return ["bash", "-euc", text.replace("python3 ", f"{sys.executable} ")]

    def _as_shown(self, output: str) -> str:
        for port, name in ((self.server.http_port, "15672"), (self.callback_port, "9000")):
            output = output.replace(f":{port}/", f":{name}/")
        return output

    @contextmanager
    def _running(self, example: str, output: Path) -> Iterator[None]:
        with output.open("wb") as log:
            process = subprocess.Popen(
                self._script(example),
                cwd=self.directory,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(TIMEOUT_S)


def shows(output: Path, text: str) -> None:
    """Waits until a running example has printed the text."""
    wait_until(lambda: text in output.read_text(), TIMEOUT_S, f"{text!r} in {output}")
