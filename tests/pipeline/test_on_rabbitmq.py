"""Streams of a RabbitMQ, which Spark reads through the hub, as docs/scaling.md says."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pika
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support.hub_on_rabbitmq import HubOnRabbitMQ
from tests.support.rabbitmq import RabbitMQServer
from tests.support.server import WarrenServer, warren_command
from warrenmq.hub.pipeline.manifest import files

from .test_jobs import Runner, newest
from .test_read import (
    channel,
    publish,
    test_a_query_follows_in_small_batches_and_resumes_from_its_checkpoint,
    test_a_stream_that_was_made_again_is_not_followed,
    test_columns_can_be_chosen_by_a_schema,
    test_filters_are_used_where_spark_hands_them_over,
)

__all__ = [
    "channel",
    "test_a_query_follows_in_small_batches_and_resumes_from_its_checkpoint",
    "test_a_stream_that_was_made_again_is_not_followed",
    "test_columns_can_be_chosen_by_a_schema",
    "test_filters_are_used_where_spark_hands_them_over",
]

pytestmark = pytest.mark.thorough
TIMEOUT_S = 250


@pytest.fixture(scope="module")
def warren(node: RabbitMQServer) -> Iterator[WarrenServer]:
    with HubOnRabbitMQ(node) as server:
        yield server
        assert "Traceback" not in server.output(), server.output()


def run(warren: WarrenServer, job: str, *more: str) -> subprocess.CompletedProcess[str]:
    command = [*warren_command(), "pipeline", "run", job, "--url", warren.http_url, *more]
    faster = {
        "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1", "WARREN_PIPELINE_NICENESS": "0",
    }  # fmt: skip
    return subprocess.run(
        [*command, "--stream", "jobs"], capture_output=True, text=True, timeout=TIMEOUT_S,
        env=os.environ | faster,
    )  # fmt: skip


def test_jobs_without_results(spark: SparkSession, warren: WarrenServer, tmp_path: Path) -> None:
    """Of a program's messages, which have no time, and the hub's; with results they are refused
    before they begin."""
    runner, archive = Runner(spark, warren, "jobs", tmp_path), tmp_path / "archive"
    for numbers in (range(10), range(10, 20), range(20, 30)):
        with pika.BlockingConnection(pika.URLParameters(warren.amqp_url)) as connection:
            publish(connection.channel(), "jobs", numbers[:5])
        for number in numbers[5:]:
            url = f"{warren.http_url}/endpoint/q/jobs"
            httpx.post(url, content=str(number), auth=("guest", "guest")).raise_for_status()
        counted = runner.run("rollup")
        assert (runner.rows, runner.lag) == (10, 0)
    # The last five of the program are of 1970, which was complete.
    assert sum(row.messages for row in newest(counted, "minute", "routing_key").values()) == 25
    refused = run(warren, "archive", "--out", str(archive))
    assert refused.returncode == 2 and "--results off" in refused.stderr, refused.stderr
    done = run(warren, "archive", "--out", str(archive), "--results", "off")
    assert done.returncode == 0, done.stderr
    archived = [
        (row["offset"], row["body"])
        for file in files(archive)
        for row in pq.ParquetFile(file).read(["offset", "body"]).to_pylist()
    ]
    assert sorted(archived) == [(number, b"%d" % number) for number in range(30)]
    runs = httpx.get(f"{warren.http_url}/api/hub/pipeline", auth=("guest", "guest")).json()["runs"]
    assert [(one["job"], one["state"], one["rows"]) for one in runs] == [("archive", "done", 30)]
