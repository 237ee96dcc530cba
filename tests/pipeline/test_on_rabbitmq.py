"""Streams of a RabbitMQ, which Spark reads through the hub, as docs/scaling.md says."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pyarrow.parquet as pq
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pyspark.sql import SparkSession

from tests.support.hub_on_rabbitmq import HubOnRabbitMQ
from tests.support.rabbitmq import RabbitMQServer
from tests.support.server import WarrenServer, warren_command
from warrenmq.hub.pipeline.manifest import files

from .test_jobs import newest
from .test_read import (
    STREAM,
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


def test_jobs_without_results(
    spark: SparkSession, warren: WarrenServer, channel: BlockingChannel, tmp_path: Path
) -> None:
    """Of a program's messages, which have no time, and the hub's; with results they are refused
    before they begin."""
    channel.queue_declare("jobs", durable=True, arguments=STREAM)
    out = {job: tmp_path / job for job in ("archive", "rollup")}
    refused = run(warren, "rollup", "--out", str(out["rollup"]))
    assert refused.returncode == 2 and "--results off" in refused.stderr, refused.stderr
    for numbers in (range(10), range(10, 20), range(20, 30)):
        for number in numbers[:5]:
            url = f"{warren.http_url}/endpoint/q/jobs"
            httpx.post(url, content=str(number), auth=("guest", "guest")).raise_for_status()
        publish(channel, "jobs", numbers[5:])
        for job, directory in out.items():
            done = run(warren, job, "--out", str(directory), "--results", "off")
            assert done.returncode == 0, done.stderr
    archived = [
        (row["offset"], row["body"])
        for file in files(out["archive"])
        for row in pq.ParquetFile(file).read(["offset", "body"]).to_pylist()
    ]
    assert sorted(archived) == [(number, b"%d" % number) for number in range(30)]
    runs = httpx.get(f"{warren.http_url}/api/hub/pipeline", auth=("guest", "guest")).json()["runs"]
    assert {(one["state"], one["rows"]) for one in runs} == {("done", 10)}
    dropped = sorted((one["job"], one["dropped"]) for one in runs)
    assert dropped == [*[("archive", 0)] * 3, ("rollup", 0), ("rollup", 0), ("rollup", 1)]
    # Spark has combined the last five of the program, which are of 1970.
    groups = newest(spark.read.parquet(*files(out["rollup"])), "minute", "routing_key").values()
    assert sum(row.messages for row in groups) == 25
