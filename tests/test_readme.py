"""README's examples do what it says, and its table of settings is whole."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pika
import pytest

from tests.support.ports import accepts, free_port
from tests.support.process import wait_until
from tests.support.server import WarrenServer
from warrenmq.app import config

README = (Path(__file__).parents[1] / "README.md").read_text()
EXAMPLES: list[str] = re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
SHOWN: dict[str, str] = dict(
    re.findall(r"^```sh\n([^`]*?)^```\n[^`]*?^```json\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
)
"""What an example prints, where a block of JSON is the next."""
TIMEOUT_S = 30.0


class Terminals:
    """Runs README's examples in one directory, with the ports of this run."""

    def __init__(self, directory: Path, server: WarrenServer) -> None:
        self.directory = directory
        self.server = server
        self.callback_port = free_port()
        self._stack = ExitStack()

    def _script(self, example: str) -> list[str]:
        ports = {"15672": self.server.http_port, "5672": self.server.amqp_port}
        ports["9000"] = self.callback_port
        text = re.sub(r"\b(15672|5672|9000)\b", lambda found: str(ports[found[0]]), example)
        return ["bash", "-euc", text.replace("python3 ", f"{sys.executable} ")]

    def run(self, example: str) -> None:
        done = subprocess.run(
            self._script(example),
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        assert done.returncode == 0, f"{example}\n{done.stdout}{done.stderr}"
        if example in SHOWN:
            assert self._as_in_readme(done.stdout) == SHOWN[example]

    def _as_in_readme(self, output: str) -> str:
        for port, name in ((self.server.http_port, "15672"), (self.callback_port, "9000")):
            output = output.replace(f":{port}/", f":{name}/")
        return output

    def start(self, example: str) -> Path:
        """Leaves the example running until `close`; gives the file that it prints to."""
        output = self.directory / f"{EXAMPLES.index(example)}.log"
        self._stack.enter_context(self._running(example, output))
        return output

    @contextmanager
    def _running(self, example: str, output: Path) -> Iterator[None]:
        with output.open("wb") as log:
            process = subprocess.Popen(
                self._script(example),
                cwd=self.directory,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(TIMEOUT_S)

    def close(self) -> None:
        self._stack.close()


def example(word: str) -> str:
    """The one example that has the word in it."""
    (found,) = [text for text in EXAMPLES if word in text]
    return found


def shows(output: Path, text: str) -> None:
    wait_until(lambda: text in output.read_text(), TIMEOUT_S, f"{text!r} in {output}")


def consumers(server: WarrenServer, queue: str) -> int:
    with pika.BlockingConnection(pika.URLParameters(server.amqp_url)) as connection:
        count: int = connection.channel().queue_declare(queue, durable=True).method.consumer_count
    return count


@pytest.fixture
def terminals(tmp_path: Path, warren: WarrenServer) -> Iterator[Terminals]:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    terminals = Terminals(tmp_path, warren)
    try:
        yield terminals
    finally:
        terminals.close()


def test_examples_do_what_they_say(terminals: Terminals) -> None:
    evan = terminals.start(example("callback.py"))
    wait_until(lambda: accepts(terminals.callback_port), TIMEOUT_S, "the callback's start")
    terminals.run(example("exchange_type=direct"))
    anders = terminals.start(example("anders.py"))
    wait_until(lambda: consumers(terminals.server, "anders") == 1, TIMEOUT_S, "Anders' consumer")

    terminals.run(example("'is at work'"))
    shows(evan, "/evan?hub.topic=tony text/plain b'is at work'")
    shows(anders, "tony text/plain b'is at work'")

    terminals.run(example("tony.py"))
    shows(evan, "/evan?hub.topic=tony text/plain b'is at home'")
    shows(anders, "tony text/plain b'is at home'")

    terminals.run(example("article.xml"))
    shows(evan, "/news?hub.topic=eu.fr application/atom+xml b'<entry xmlns=")

    terminals.run(example("wash the dishes"))
    shows(evan, "b'wash the dishes'")
    shows(evan, "b'feed the rabbits'")

    terminals.run(example("hub.mode=unsubscribe"))
    terminals.run(example("openapi.json"))
    assert "paths" in json.loads((terminals.directory / "openapi.json").read_text())
    assert len(SHOWN) == 3


def test_table_of_settings_is_the_one_in_force() -> None:
    rows = re.findall(r"^\| `WARREN_(\w+)` \| (.*?) \| (.*) \|$", README, re.MULTILINE)
    defaults = config.Settings()
    expected = [
        (name.upper(), _shown(getattr(defaults, name)), config.DESCRIPTIONS[name])
        for name in config.NAMES
    ]
    assert rows == expected


def _shown(value: object) -> str:
    if value == "":
        return ""
    if isinstance(value, bool):
        value = int(value)
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"
