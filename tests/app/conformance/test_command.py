"""`warren conformance` at the command line: what is printed, written and returned."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.http import Answer, Callback
from tests.support.ports import free_port
from warrenmq.app.cli import run

from .wrong_hub import WrongHub

Output = pytest.CaptureFixture[str]


@contextmanager
def hub(*faults: str) -> Iterator[str]:
    """The small hub in a loop of its own; gives its URL."""
    urls: list[str] = []
    ready, over = threading.Event(), threading.Event()

    async def serve() -> None:
        async with WrongHub(*faults) as wrong:
            urls.append(wrong.url)
            ready.set()
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(10)
    try:
        yield urls[0]
    finally:
        over.set()
        thread.join()


def test_a_conforming_hub_exits_with_0(capsys: Output, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    with hub() as url:
        arguments = ["--hub", url, "--only", "101, 104", "--verbose", "--json", str(file)]
        assert run(["conformance", *arguments]) == 0
    shown = capsys.readouterr().out
    assert "101  MUST    pass  Subscription with a secret" in shown
    assert f"-> POST {url} hub.mode=subscribe" in shown
    assert "hub.secret=(20 bytes)" in shown
    assert "2 passed, 0 failed, 0 skipped" in shown
    report = json.loads(file.read_text())
    assert (report["hub"], report["conforms"]) == (url, True)
    assert report["summary"]["pass"] == report["summary"]["by_level"]["MUST"]["pass"] == 2
    assert [check["number"] for check in report["checks"]] == [101, 104]
    assert report["checks"][0]["verdict"] == "pass"
    assert report["checks"][0]["reason"] == "signs with sha256"


def test_a_violated_must_exits_with_1(capsys: Output, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    with hub("signs something else") as url:
        assert run(["conformance", "--hub", url, "--only", "101", "--json", str(file)]) == 1
    shown = capsys.readouterr().out
    assert "101  MUST    FAIL" in shown
    assert "rule 23; WebSub 7.1" in shown
    assert "Violated rules that are a MUST of WebSub: 1." in shown
    assert json.loads(file.read_text())["conforms"] is False


def test_other_checks_are_skipped_if_the_simplest_fails(capsys: Output) -> None:
    with hub("never subscribes") as url:
        assert run(["conformance", "--hub", url, "--patience", "0.5"]) == 1
    shown = capsys.readouterr().out
    assert "can it reach that address? (see --public-url)" in shown
    assert shown.count("needs what failed in check 100") > 50


def test_an_unreachable_hub_exits_with_2(capsys: Output) -> None:
    url = f"http://127.0.0.1:{free_port()}/hub"
    assert run(["conformance", "--hub", url]) == 2
    told = capsys.readouterr()
    assert told.err.startswith(f"warren: no hub answers at {url}: ")
    assert (told.err.count("\n"), told.out) == (1, "")


@pytest.mark.parametrize(
    ("status", "reason"),
    [(401, "wants a user and a password"), (403, "let this user in"), (404, "is not there")],
)
def test_a_server_that_is_no_hub_exits_with_2(capsys: Output, status: int, reason: str) -> None:
    with Callback() as other:
        other.default = Answer(status)
        assert run(["conformance", "--hub", other.url]) == 2
    told = capsys.readouterr().err
    assert reason in told
    assert f"answered {status}" in told


def test_credentials_are_sent_and_not_shown(capsys: Output) -> None:
    with Callback() as other:
        other.default = Answer(400, body=b"no")
        arguments = ["--hub", other.url, "--user", "ann", "--password", "pa55", "--verbose"]
        assert run(["conformance", *arguments, "--only", "100"]) == 1
        assert {one.headers["Authorization"] for one in other.requests} == {"Basic YW5uOnBhNTU="}
    assert "pa55" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--hub", "hub.example"], "give an http or https URL"),
        (["--hub", "http://127.0.0.1:1/", "--only", "1,101"], "--only 1: no such check"),
        (["--hub", "http://127.0.0.1:1/", "--only", "first"], "give numbers"),
        (["--hub", "http://127.0.0.1:1/", "--listen", "here"], "give HOST:PORT"),
        (["--hub", "http://127.0.0.1:1/", "--public-url", "me"], "give an http or https URL"),
        (["--hub", "https://hub.example/"], "give --listen and --public-url"),
        (["--hub", "http://127.0.0.1:1/", "--patience", "0"], "patience"),
        ([], "--hub"),
    ],
)
def test_bad_arguments_are_one_line(capsys: Output, arguments: list[str], reason: str) -> None:
    assert run(["conformance", *arguments]) == 2
    told = capsys.readouterr()
    assert reason in told.err
    assert (told.err.count("\n"), told.out) == (1, "")


def test_an_address_in_use(capsys: Output) -> None:
    with hub() as url:
        place = url.removeprefix("http://").removesuffix("/hub")
        assert run(["conformance", "--hub", url, "--listen", place, "--only", "100"]) == 2
    assert f"--listen {place}: " in capsys.readouterr().err


def test_a_file_that_can_not_be_written(capsys: Output, tmp_path: Path) -> None:
    with hub() as url:
        arguments = ["--hub", url, "--only", "185", "--json", str(tmp_path)]
        assert run(["conformance", *arguments]) == 2
    told = capsys.readouterr()
    assert f"--json {tmp_path}: Is a directory" in told.err
    assert "185" in told.out
