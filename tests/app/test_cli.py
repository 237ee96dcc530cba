"""The command line, without starting a server; `test_serve.py` starts some."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from warrenmq.app import main
from warrenmq.app.cli import run
from warrenmq.app.configuration.loading import NAMES
from warrenmq.app.configuration.settings import Settings

Output = pytest.CaptureFixture[str]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    started: list[Settings] = []
    monkeypatch.setattr(main, "serve", started.append)
    for name in ("DEV", "HOST", "HTTP_PORT"):
        monkeypatch.delenv(f"WARREN_{name}", raising=False)
    return started


def test_version(capsys: Output) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"warren {version('warrenmq')}\n"


def test_help_lists_every_setting(capsys: Output) -> None:
    assert run(["serve", "--help"]) == 0
    text = capsys.readouterr().out
    for name in NAMES:
        assert f"--{name.replace('_', '-')}" in text
        assert f"WARREN_{name.upper()}" in "".join(text.split())
    for default in ("DEV;defaultoff", "LOGIN_THROTTLE;defaulton", "HTTP_PORT;default15672"):
        assert f"[WARREN_{default}]" in "".join(text.split())


@pytest.mark.parametrize("command", [[], ["serve"], ["verify"], ["definitions", "import"]])
def test_each_command_has_the_short_help_option(capsys: Output, command: list[str]) -> None:
    assert run([*command, "-h"]) == 0
    assert capsys.readouterr().out.startswith("Usage: " + " ".join(["warren", *command]))


def test_options_of_serve_are_grouped(capsys: Output) -> None:
    assert run(["serve", "--help"]) == 0
    text = capsys.readouterr().out
    headings = [line[:-1] for line in text.splitlines() if line.endswith(":") and line[0] != " "]
    assert headings[0] == "Data"
    assert headings[-1] == "Other"
    assert text.index("TLS:") < text.index("--tls-key") < text.index("--dev") < text.index("HTTP:")


def test_flags(served: list[Settings]) -> None:
    assert run(["serve", "-D", "d", "--host", "127.0.0.1", "--http-port", "1", "--dev"]) == 0
    assert served == [Settings(data="d", host="127.0.0.1", http_port=1, dev=True)]


def test_environment(served: list[Settings], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARREN_HTTP_PORT", "1")
    monkeypatch.setenv("WARREN_DEV", "1")
    assert run(["serve"]) == 0
    assert served == [Settings(http_port=1, dev=True)]


@pytest.mark.parametrize(
    "arguments",
    [
        ["serve", "--colour", "red"],
        ["serve", "--http-port"],
        ["serve", "--http-port", "x"],
        ["serve", "extra"],
        ["serve", "--config", "/nowhere"],
        ["dance"],
    ],
)
def test_bad_usage_is_one_line(
    served: list[Settings], capsys: Output, arguments: list[str]
) -> None:
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("warren: ")
    assert captured.err.count("\n") == 1
    assert served == []


@pytest.mark.parametrize(
    ("mistyped", "hint"),
    [("list_queues", "did you mean queue?"), ("rabbitmqctl", "'warren --help' lists all")],
)
def test_a_mistyped_command(capsys: Output, mistyped: str, hint: str) -> None:
    assert run([mistyped]) == 2
    assert capsys.readouterr().err == f"warren: there is no command '{mistyped}'; {hint}\n"


def test_without_a_command_there_is_help(capsys: Output) -> None:
    assert run([]) == 2
    assert "serve" in capsys.readouterr().out
