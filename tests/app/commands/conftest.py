"""Runs commands in this process, against a real server."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.server import WarrenServer
from warrenmq.app.cli import run
from warrenmq.app.commands.login import VARIABLES

Command = Callable[..., str]


class _Input(io.TextIOWrapper):
    """A standard input that is no terminal."""

    def __init__(self, text: str) -> None:
        super().__init__(io.BytesIO(text.encode()))


@pytest.fixture
def no_login(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Neither profiles nor variables of the developer count; returns the folder of the profiles."""
    for variable in VARIABLES.values():
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def command(
    warren: WarrenServer,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    no_login: Path,
) -> Command:
    """Runs a command that has to end with `code`; returns its output, or its error for other codes
    than 0."""

    def run_command(*words: str, code: int = 0, given: str = "") -> str:
        monkeypatch.setenv("WARREN_URL", warren.http_url)
        monkeypatch.setattr("sys.stdin", _Input(given))
        found = run(list(words))
        printed = capsys.readouterr()
        assert (found, printed.err.count("\n")) == (code, int(code != 0)), printed
        return printed.err if code else printed.out

    return run_command
