"""The job archive: what it writes is what was published, once, whatever happens to it."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pika
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.crash.faults import SmallDisk
from tests.support.process import wait_until
from tests.support.server import WarrenServer
from warrenmq.hub.pipeline import client
from warrenmq.hub.pipeline.errors import DataLossError, OutputError, UnavailableError
from warrenmq.hub.pipeline.jobs import merging
from warrenmq.hub.pipeline.jobs.archive import ARCHIVE, Parameters
from warrenmq.hub.pipeline.jobs.job import Task
from warrenmq.hub.pipeline.manifest import Manifest, files
from warrenmq.hub.pipeline.options import ServerLogin
from warrenmq.hub.pipeline.outages import run_over_outages
from warrenmq.hub.pipeline.progress import Progress, Report
from warrenmq.hub.pipeline.schema import ARROW_SCHEMA
from warrenmq.hub.pipeline.server import ServerClient, declare_results
from warrenmq.hub.pipeline.spark_errors import explain

TIMEOUT_S = 250.0
EXCHANGES = ("", "news", "../../prices/ü'; DROP TABLE t; -- " + "long" * 30)


@pytest.fixture
def channel(warren: WarrenServer) -> Iterator[BlockingChannel]:
    with pika.BlockingConnection(pika.URLParameters(warren.amqp_url)) as connection:
        yield connection.channel()


def declare(channel: BlockingChannel, stream: str, **arguments: Any) -> None:
    channel.queue_declare(stream, durable=True, arguments={"x-queue-type": "stream", **arguments})
    for exchange in EXCHANGES[1:]:
        channel.exchange_declare(exchange, "topic", durable=True)
        channel.queue_bind(stream, exchange, f"{stream}.#")


def publish(channel: BlockingChannel, task: Task[Parameters], numbers: range) -> None:
    """Publishes messages of several shapes and sizes, and waits until they are on disk."""
    for number in numbers:
        message = expected(task.stream, number)
        properties = pika.BasicProperties(
            message_id=message["message_id"], content_type=message["content_type"], delivery_mode=2,
            headers=None if number % 5 else {"n": number},
        )  # fmt: skip
        channel.basic_publish(
            message["exchange"], message["routing_key"], message["body"], properties
        )
    wait_until(lambda: task.offsets().next == numbers.stop, 60, "publishing")


def expected(stream: str, number: int) -> dict[str, Any]:
    """Returns columns of a message; its number is its offset too."""
    exchange = EXCHANGES[number % 3]
    return {
        "offset": number,
        "exchange": exchange,
        "routing_key": f"{stream}.{number % 50}" if exchange else stream,
        "message_id": f"m-{number}",
        "content_type": "text/plain" if number % 7 else None,
        "body": f"{number} ".encode() * (number % 97 if number % 1000 else 20_000),
    }


def task_of(warren: WarrenServer, stream: str, place: Path, **parameters: Any) -> Task[Parameters]:
    server = ServerLogin(warren.http_url, "guest", "guest")
    return Task(server, "/", stream, place, Parameters(**parameters), results=None)


def archive(spark: SparkSession, task: Task[Parameters]) -> list[Report]:
    reports: list[Report] = []
    progress = Progress(reports.append)
    ARCHIVE.check(task)
    ARCHIVE.run(spark, task, progress)
    progress.end()
    return reports


def table(directory: Path) -> pa.Table:
    parts = [pq.ParquetFile(path).read() for path in files(directory)]
    return pa.concat_tables(parts).sort_by("offset")


def check_table(task: Task[Parameters], numbers: range) -> None:
    """Compares the whole table, by its manifest, with what was published."""
    found = table(task.directory)
    assert found.schema.equals(ARROW_SCHEMA)
    wanted = [expected(task.stream, number) for number in numbers]
    for column in wanted[0]:
        assert found[column].to_pylist() == [message[column] for message in wanted], column


def test_all_that_was_published_is_there_once(
    spark: SparkSession, warren: WarrenServer, channel: BlockingChannel, tmp_path: Path
) -> None:
    task = task_of(warren, "all", tmp_path, max_rows=15_000)
    declare(channel, "all")
    publish(channel, task, range(20_000))
    (*_, last) = archive(spark, task)
    assert (last.state, last.rows, last.lag) == ("done", 20_000, 0)
    check_table(task, range(20_000))
    commits = Manifest(tmp_path).commits
    assert all(commit.rows <= 15_000 for commit in commits) and len(commits) > 1
    assert [commit.first for commit in commits] == [0, *(commit.next for commit in commits[:-1])]
    assert spark.read.parquet(*files(tmp_path)).count() == 20_000
    (*_, last) = archive(spark, task)
    assert (last.rows, last.lag) == (0, 0)
    assert Manifest(tmp_path).commits == commits


def test_the_manifest_has_offsets_and_partition_of_each_file(
    spark: SparkSession, warren: WarrenServer, channel: BlockingChannel, tmp_path: Path
) -> None:
    task = task_of(warren, "files", tmp_path)
    declare(channel, "files")
    publish(channel, task, range(300))
    archive(spark, task)
    found = Manifest(tmp_path).files()
    assert {file.partition["exchange"] for file in found} == set(EXCHANGES)
    for file in found:
        place = tmp_path / file.path
        rows = pq.ParquetFile(place).read(["exchange", "timestamp", "offset"])
        assert set(rows["exchange"].to_pylist()) == {file.partition["exchange"]}
        days = {str(moment.date()) for moment in rows["timestamp"].to_pylist()}
        assert days == {file.partition["day"]}
        assert place.parent.name == f"day={file.partition['day']}"
        offsets = rows["offset"].to_pylist()
        assert (file.rows, file.first, file.next) == (len(rows), offsets[0], offsets[-1] + 1)
        assert file.bytes == place.stat().st_size


def test_each_commit_is_published_once(
    spark: SparkSession, warren: WarrenServer, channel: BlockingChannel, tmp_path: Path
) -> None:
    task = replace(task_of(warren, "told", tmp_path, max_rows=6), results="results")
    declare_results(task.server, "/", "results")
    channel.queue_declare("summaries", durable=True)
    channel.queue_bind("summaries", "results", "archive")
    declare(channel, "told")
    publish(channel, task, range(10))
    for _ in range(2):
        archive(spark, task)
    found = []
    while (body := channel.basic_get("summaries", auto_ack=True)[2]) is not None:
        found.append(json.loads(body))
    summaries = [(one["stream"], one["commit"], one["next"], one["rows"]) for one in found]
    assert summaries == [("told", 0, 6, 6), ("told", 1, 10, 4)]


def test_the_server_knows_how_far_an_archive_is(
    spark: SparkSession, warren: WarrenServer, channel: BlockingChannel, tmp_path: Path
) -> None:
    task = task_of(warren, "kept", tmp_path, name="cold")
    declare(channel, "kept")
    publish(channel, task, range(10))
    archive(spark, task)
    with ServerClient(task.server) as client:
        (found,) = client.get("/api/hub/pipeline")["archives"]
    assert (found["stream"], found["archive"], found["offset"]) == ("kept", "cold", 10)


def test_a_run_that_was_killed_before_its_commit_is_done_again(
    spark: SparkSession, warren: WarrenServer, channel: BlockingChannel, tmp_path: Path
) -> None:
    task = task_of(warren, "killed", tmp_path, max_rows=200)
    declare(channel, "killed")
    publish(channel, task, range(500))
    archive(spark, task)
    newest = tmp_path / "_manifest" / "000000000002.json"
    newest.rename(newest.with_suffix(".123.tmp"))
    publish(channel, task, range(500, 600))
    archive(spark, task)
    check_table(task, range(600))
    assert len(list(tmp_path.glob("*/*/*.parquet"))) > len(files(tmp_path))


def test_it_follows_a_stream_until_it_is_stopped(
    spark: SparkSession, warren: WarrenServer, channel: BlockingChannel, tmp_path: Path
) -> None:
    task = replace(task_of(warren, "followed", tmp_path, every_s=0.1), follow=True)
    declare(channel, "followed")
    progress = Progress()
    with ThreadPoolExecutor(1) as runner:
        run = runner.submit(ARCHIVE.run, spark, task, progress)
        try:
            for numbers in (range(10), range(10, 25)):
                publish(channel, task, numbers)
                wait_until(partial(has_archived, tmp_path, numbers.stop), 60, "a commit")
        finally:
            progress.stop()
        run.result()
    check_table(task, range(25))


def has_archived(directory: Path, count: int) -> bool:
    return archived(directory) == count


def archived(directory: Path) -> int:
    return sum(commit.rows for commit in Manifest(directory).commits)


def test_an_archive_begins_at_the_starting_offset(
    spark: SparkSession, warren: WarrenServer, channel: BlockingChannel, tmp_path: Path
) -> None:
    task = task_of(warren, "later", tmp_path, starting_offset="20")
    declare(channel, "later")
    publish(channel, task, range(30))
    archive(spark, task)
    check_table(task, range(20, 30))


def test_a_stream_that_was_made_again_is_refused(
    spark: SparkSession, warren: WarrenServer, channel: BlockingChannel, tmp_path: Path
) -> None:
    task = task_of(warren, "again", tmp_path)
    declare(channel, "again")
    publish(channel, task, range(10))
    archive(spark, task)
    channel.queue_delete("again")
    declare(channel, "again")
    publish(channel, task, range(30))
    with pytest.raises(DataLossError, match="'again' .* was deleted and made again since .*, so"):
        archive(spark, task)
    check_table(task, range(10))
    archive(spark, task_of(warren, "again", tmp_path, fail_on_data_loss=False))
    assert archived(tmp_path) == 40


def test_a_task_that_can_not_write_fails_the_job_with_one_line(
    spark: SparkSession, warren: WarrenServer, channel: BlockingChannel, tmp_path: Path
) -> None:
    task = task_of(warren, "unwritable", tmp_path)
    declare(channel, "unwritable")
    publish(channel, task, range(10))
    (tmp_path / "exchange=news").write_text("a file in the way")
    with pytest.raises(PySparkException) as caught:
        archive(spark, task)
    error = explain(caught.value)
    assert isinstance(error, OutputError) and "\n" not in str(error)
    assert f"{tmp_path}/exchange=news" in str(error)
    assert str(error).endswith(
        ("can't be written: File exists", "can't be written: Not a directory")
    )
    assert Manifest(tmp_path).commits == []


@pytest.mark.thorough
def test_a_run_that_follows_waits_for_the_server(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    monkeypatch.setattr(client, "PATIENCE_S", 0.1)
    monkeypatch.setattr(merging, "MANY", 2)
    progress = Progress()
    with WarrenServer() as server, ThreadPoolExecutor(1) as pool:
        task = replace(task_of(server, "kept", tmp_path, every_s=0.1, max_rows=5), follow=True)
        run = partial(ARCHIVE.run, spark, task, progress)

        def publish_more(numbers: range) -> None:
            with pika.BlockingConnection(pika.URLParameters(server.amqp_url)) as connection:
                declare(connection.channel(), "kept")
                publish(connection.channel(), task, numbers)

        publish_more(range(10))
        following = pool.submit(run_over_outages, run, task.server, progress, TIMEOUT_S)
        try:
            wait_until(lambda: archived(tmp_path) == 10, TIMEOUT_S, "the first messages")
            server.kill()
            wait_until(lambda: "waiting for the server" in caplog.text, TIMEOUT_S, "the outage")
            server.start()
            publish_more(range(10, 20))
            wait_until(
                lambda: following.done() or archived(tmp_path) == 20, TIMEOUT_S, "what came later"
            )
        finally:
            progress.stop()
        following.result()
    check_table(task, range(20))
    # Small commits were merged, one file for each exchange.
    assert [len(commit.files) for commit in Manifest(tmp_path).commits] == [3, 0, 0, 3]
    with pytest.raises(UnavailableError, match="stream 'kept' .* can't be reached"):
        run_over_outages(run, task.server, Progress(), 0.0)


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_a_full_disk_fails_the_run_and_nothing_is_committed(
    warren: WarrenServer, channel: BlockingChannel, tmp_path: Path
) -> None:
    task = task_of(warren, "filling", tmp_path / "disk" / "table")
    declare(channel, "filling")
    publish(channel, task, range(3_000))
    (tmp_path / "disk").mkdir()
    with SmallDisk(tmp_path / "disk", 32 * 1024) as disk:
        command = [*disk.command, "pipeline", "run", "archive", "--stream", "filling"]
        command += ["--url", warren.http_url, "--out", str(task.directory), "--results", "off"]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S,
            env=os.environ | {
                "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1", "WARREN_PIPELINE_NICENESS": "0",
            },
        )  # fmt: skip
        *_, said = done.stderr.splitlines()
        assert done.returncode == 2
        assert re.search("disk/table/.*can't be written: No space left on device", said)
        listed = subprocess.run([*disk.command[:-1], "ls", task.directory], capture_output=True)
        assert b"exchange=news" in listed.stdout and b"_manifest" not in listed.stdout
