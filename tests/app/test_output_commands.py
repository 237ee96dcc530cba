"""`warren outputs`, as people and programs use it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.support.server import WarrenServer
from warrenmq.app.cli import run

Outputs = Callable[..., tuple[int, str, str]]


@pytest.fixture
def outputs(
    warren: WarrenServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Outputs:
    monkeypatch.delenv("WARREN_PASSWORD", raising=False)

    def run_command(*words: str) -> tuple[int, str, str]:
        code = run(["outputs", *words, "--url", warren.http_url])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run_command


def test_an_output_from_its_definition_to_its_end(
    warren: WarrenServer, outputs: Outputs, tmp_path: Path
) -> None:
    httpx.put(f"{warren.http_url}/endpoint/x/news", auth=("guest", "guest")).raise_for_status()
    file = tmp_path / "eu.json"
    file.write_text(json.dumps({"sources": [{"exchange": "news"}], "visibility": "token"}))
    atom = f"{warren.http_url}/feeds/eu.atom"
    code, shown, _ = outputs("add", "eu", str(file))
    assert (code, shown.splitlines()[0]) == (0, atom)
    assert outputs("list")[1].split()[-3:] == ["eu", "token", atom]
    assert json.loads(outputs("show", "eu", "--json")[1])["sources"][0]["problem"] is None
    url = outputs("token", "eu", "Acme")[1].splitlines()[0]
    assert url.startswith(f"{atom}?token=")
    assert httpx.get(url).status_code == 200
    [made] = outputs("tokens", "eu", "--json")[1].splitlines()
    token_id = json.loads(made)["id"]
    assert json.loads(made)["name"] == "Acme"
    assert outputs("revoke", "eu", token_id) == (0, "the token is revoked\n", "")
    assert httpx.get(url).status_code == 401
    assert outputs("remove", "eu") == (0, "output 'eu' is removed\n", "")
    assert outputs("list") == (0, "no outputs\n", "")


def test_refusals(outputs: Outputs, tmp_path: Path) -> None:
    file = tmp_path / "wrong.json"
    file.write_text('{"sources": []}')
    code, _, error = outputs("add", "eu", str(file))
    assert (code, "sources: is not as expected" in error) == (4, True)
    code, _, error = outputs("add", "eu", str(tmp_path / "none.json"))
    assert (code, "none.json can't be read" in error) == (2, True)
    code, _, error = outputs("show", "none")
    assert (code, "no output 'none'" in error) == (4, True)
