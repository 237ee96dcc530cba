"""A job on a cluster that loses a machine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pika
import pyarrow.parquet as pq
import pytest

from tests.support.process import kill, wait_until
from tests.support.server import WarrenServer, warren_command
from tests.support.spark_cluster import SparkCluster
from warrenmq.hub.pipeline.java import NoJava, find_java
from warrenmq.hub.pipeline.manifest import Manifest

pytestmark = pytest.mark.thorough

STREAM = "archived"
ROWS, ROWS_A_REQUEST, ROWS_A_COMMIT = 120_000, 20_000, 20_000
TIMEOUT_S = 120.0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[SparkCluster]:
    try:
        java = find_java(os.environ, tmp_path).home
    except NoJava as error:
        pytest.skip(str(error))
    with SparkCluster(tmp_path / "cluster", java, workers=2) as running:
        yield running


def fill(warren: WarrenServer) -> None:
    """Publishes messages whose bodies are their numbers; they are on disk when it returns."""
    with pika.BlockingConnection(pika.URLParameters(warren.amqp_url)) as connection:
        arguments = {"x-queue-type": "stream"}
        connection.channel().queue_declare(STREAM, durable=True, arguments=arguments)
    url = f"{warren.http_url}/endpoint/q/{STREAM}?hub.mode=batch&hub.topic=number"
    headers = {"Content-Type": "application/x-ndjson"}
    for first in range(0, ROWS, ROWS_A_REQUEST):
        lines = "\n".join(map(str, range(first, first + ROWS_A_REQUEST)))
        answer = httpx.post(
            url, content=lines, headers=headers, auth=("guest", "guest"), timeout=60
        )
        assert answer.status_code == 202, answer.text


@contextmanager
def archiving(
    warren: WarrenServer, cluster: SparkCluster, directory: Path, log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """The job, in a process that ends with the block."""
    arguments = ["--master", cluster.url, "--url", warren.http_url, "--stream", STREAM]
    arguments += ["--out", str(directory), "--set", f"max_rows={ROWS_A_COMMIT}"]
    with log.open("wb") as output:
        job = subprocess.Popen(
            [*warren_command(), "pipeline", "run", "archive", *arguments],
            env=cluster.env,
            stdout=output,
            stderr=output,
        )
    try:
        yield job
    finally:
        if job.poll() is None:
            kill(job)


def commits(directory: Path) -> int:
    return len(list(directory.glob("_manifest/*.json")))


@pytest.mark.timeout(400)
def test_a_killed_worker_loses_and_repeats_nothing(
    warren: WarrenServer, cluster: SparkCluster, tmp_path: Path
) -> None:
    fill(warren)
    archive, log = tmp_path / "archive", tmp_path / "driver.log"
    with archiving(warren, cluster, archive, log) as job:
        wait_until(lambda: commits(archive) > 0 or job.poll() is not None, TIMEOUT_S, "a commit")
        assert commits(archive) < ROWS // ROWS_A_COMMIT, log.read_text()
        cluster.kill_worker()
        assert job.wait(TIMEOUT_S) == 0, log.read_text() + cluster.output()
    found = [
        (row["offset"], row["body"])
        for file in Manifest(archive).files()
        for row in pq.read_table(archive / file.path, columns=["offset", "body"]).to_pylist()
    ]
    assert sorted(found) == [(number, b"%d" % number) for number in range(ROWS)]
    runs = httpx.get(f"{warren.http_url}/api/hub/pipeline", auth=("guest", "guest")).json()["runs"]
    assert [(run["job"], run["state"], run["rows"]) for run in runs] == [("archive", "done", ROWS)]
