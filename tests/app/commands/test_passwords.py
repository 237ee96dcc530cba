"""Passwords of users that commands log in: given, asked for on a terminal, or missing."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.app.support import refusal
from tests.support.process import terminate, wait_until
from tests.support.server import WarrenServer, warren_command

WAIT_S = 60.0


@pytest.fixture
def ann(warren: WarrenServer) -> None:
    with httpx.Client(base_url=warren.http_url, auth=("guest", "guest")) as client:
        body = {"password": "eleven purple rabbits", "tags": "management"}
        client.put("/api/users/ann", json=body).raise_for_status()
        rights = {"configure": ".*", "write": ".*", "read": ".*"}
        client.put("/api/permissions/%2F/ann", json=rights).raise_for_status()


class AtTerminal:
    """A command whose input is a terminal of its own."""

    def __init__(self, output: Path, *arguments: str) -> None:
        self._keyboard, terminal = pty.openpty()
        self._output = output
        clean = {name: value for name, value in os.environ.items() if "WARREN" not in name}
        with output.open("wb") as file:
            self.process = subprocess.Popen(
                [*warren_command(), *arguments],
                stdin=terminal, stdout=file, stderr=file, start_new_session=True,
                env={**clean, "PYTHONUNBUFFERED": "1", "XDG_CONFIG_HOME": str(output.parent)},
            )  # fmt: skip
        os.close(terminal)

    def shows(self, text: str) -> None:
        wait_until(lambda: text in self._output.read_text(), WAIT_S, text)

    def type(self, line: str) -> None:
        os.write(self._keyboard, f"{line}\n".encode())

    def close(self) -> None:
        terminate(self.process, WAIT_S)
        os.close(self._keyboard)


@pytest.fixture
def started() -> Iterator[list[AtTerminal]]:
    found: list[AtTerminal] = []
    yield found
    for one in found:
        one.close()


@pytest.mark.parametrize(
    ("arguments", "where", "end"),
    [
        (["queue", "list"], "--url", "no queues"),
        (["listen", "q", "missing"], "--hub", "no queue 'missing'"),
        (["tunnel", "8000"], "--hub", " -> http://127.0.0.1:8000"),
    ],
)
@pytest.mark.usefixtures("ann")
def test_asked_for_on_a_terminal(
    warren: WarrenServer, started: list[AtTerminal], tmp_path: Path,
    arguments: list[str], where: str, end: str,
) -> None:  # fmt: skip
    given = (*arguments, where, warren.http_url, "--user", "ann")
    command = AtTerminal(tmp_path / "output", *given)
    started.append(command)
    command.shows("Password of 'ann': ")
    command.type("eleven purple rabbits")
    command.shows(end)
    assert "purple" not in (tmp_path / "output").read_text()


@pytest.mark.parametrize(
    ("arguments", "ways"),
    [
        (["queue", "list"], "--password-file, --token, WARREN_PASSWORD, or a profile"),
        (["tunnel", "8000"], "--password-file, --token, WARREN_PASSWORD, or a profile"),
        (
            ["conformance", "--hub", "http://localhost:1"],
            "--password or WARREN_CONFORMANCE_PASSWORD",
        ),
    ],
)
def test_needed_without_a_terminal(tmp_path: Path, arguments: list[str], ways: str) -> None:
    text = refusal(*arguments, "--user", "ann", XDG_CONFIG_HOME=str(tmp_path))
    assert f"user 'ann' needs a password: give {ways}" in text


@pytest.mark.usefixtures("ann")
def test_given_by_a_variable(warren: WarrenServer, tmp_path: Path) -> None:
    command = [*warren_command(), "queue", "list", "--json", "--url", warren.http_url]
    password = {"WARREN_USER": "ann", "WARREN_PASSWORD": "eleven purple rabbits"}
    environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path), **password}
    subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, check=True, timeout=WAIT_S)
