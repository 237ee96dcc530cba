"""Which server a command asks, and as whom: flags, variables, profiles, defaults."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.http import Answer, Callback
from tests.support.ports import free_port
from tests.support.server import WarrenServer, warren_command
from warrenmq.app.cli import run
from warrenmq.app.commands.login import read_login
from warrenmq.app.configuration.loading import load
from warrenmq.core.errors import ConfigError

FULL = Path("/dev/full")
PROFILES = """
[default]
url = "http://default:1/"

[work]
url = "https://work"
user = "ada"
password_file = "{file}"

[page]
token = "t"
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "warren").mkdir()
    (tmp_path / "password").write_text("of ada\n")
    text = PROFILES.format(file=tmp_path / "password")
    (tmp_path / "warren" / "config.toml").write_text(text)
    return {"XDG_CONFIG_HOME": str(tmp_path)}


def test_flags_come_before_variables_and_these_before_profiles(
    environment: dict[str, str],
) -> None:
    assert read_login({}, {"XDG_CONFIG_HOME": "/none"}).url == "http://localhost:15672"
    assert read_login({}, environment).url == "http://default:1"
    work = read_login({"profile": "work"}, environment)
    assert (work.url, work.user, work.password) == ("https://work", "ada", "of ada")
    environment |= {"WARREN_PROFILE": "work", "WARREN_USER": "bob", "WARREN_TOKEN": "secret"}
    named = read_login({"url": "http://flag"}, environment)
    assert (named.url, named.user, named.authorization()) == ("http://flag", "bob", "Bearer secret")
    assert read_login({"password": "p"}, environment).password == "p"
    assert "secret" not in repr(named)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"profile": "none"}, "profile 'none' is not in .*; known: default, page, work"),
        ({"url": "ftp://h"}, "--url ftp://h: give http://HOST:PORT"),
        ({"url": "http://a:secret@h"}, "--url http://h: give"),
        ({"url": "http://a:sec/ret@h:99999"}, "--url http://h:99999: give"),
        ({"url": "http://[::1"}, "--url http://.::1: give"),
        ({"password": "p", "token": "t"}, "both a password and a token"),
        ({"password_file": "/none"}, "--password-file /none can't be read"),
    ],
)
def test_what_can_not_be_a_login(
    environment: dict[str, str], given: dict[str, str], reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason) as caught:
        read_login(given, environment)
    assert "secret" not in str(caught.value)


def test_a_profile_has_known_keys_only(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "warren" / "config.toml").write_text("[default]\nhost = 'h'\n")
    with pytest.raises(ConfigError, match="'host': a profile is a table of url, user"):
        read_login({}, environment)


def test_variables_of_clients_are_no_unknown_settings() -> None:
    load({}, {"WARREN_URL": "http://h", "WARREN_PASSWORD": "p", "WARREN_TUNNEL_TOKEN": "t"})


def test_a_server_that_is_not_there(
    capsys: pytest.CaptureFixture[str], no_login: Path, warren: WarrenServer
) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    assert run(["vhost", "list", "--url", url]) == 5
    error = capsys.readouterr().err
    assert error.startswith(f"warren: the server at {url} can't be reached: ")
    assert "start it with 'warren serve'" in error
    for words in (["vhost", "list"], ["tail", "q", "jobs"]):
        assert run([*words, "--url", warren.http_url, "--password", "x"]) == 4
        error = capsys.readouterr().err
        assert error.startswith(f"warren: the server at {warren.http_url}: 401 ")
        assert "log in with --user and --password-file" in error


@pytest.mark.parametrize(
    "command",
    [["pipeline", "list"], ["pipeline", "run", "archive", "--stream", "s", "--out", "."]],
)
def test_a_server_that_is_another(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    no_login: Path,
    command: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)  # the run locks its directory
    with Callback() as other:
        other.default = Answer(body=b"<p>Hello</p>")
        assert run([*command, "--url", other.url]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "what has answered there is no Warren" in error


@pytest.mark.parametrize(
    ("body", "reason"),
    [(b"<h1>It works!</h1>", "is not JSON"), (b"{}", "has no 'items'")],
)
def test_a_server_that_is_no_warren(
    capsys: pytest.CaptureFixture[str], no_login: Path, body: bytes, reason: str
) -> None:
    with Callback() as other:
        other.default = Answer(body=body)
        url = other.url.rpartition("/")[0]
        assert run(["queue", "list", "--url", url]) == 5
        error = capsys.readouterr().err
        assert f"{url} is no Warren: its answer to GET /api/queues" in error and reason in error
        assert run(["doctor", "--url", url, "--data", str(no_login)]) == 1
        assert "is no Warren" in capsys.readouterr().out


@pytest.mark.skipif(not FULL.exists(), reason="the system has no /dev/full")
def test_an_output_that_takes_nothing(warren: WarrenServer) -> None:
    with FULL.open("w") as full:
        done = subprocess.run(
            [*warren_command(), "vhost", "list", "--url", warren.http_url],
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=20,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "warren: the output can't be written: No space left on device\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    assert run(["completion", shell]) == 0
    assert "_WARREN_COMPLETE=" in capsys.readouterr().out
    monkeypatch.setenv("_WARREN_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "warren del")
    monkeypatch.setenv("COMP_CWORD", "1")
    with pytest.raises(SystemExit):
        run([])
    assert capsys.readouterr().out == "plain,deliveries\n"
