"""A token reads and publishes in the place of a password, and is shown nowhere."""

from __future__ import annotations

from pathlib import Path

import httpx
import pika
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.support.server import WarrenServer
from warrenmq.hub.pipeline.jobs.job import Task, read_parameters
from warrenmq.hub.pipeline.jobs.registry import find_job
from warrenmq.hub.pipeline.options import ServerLogin
from warrenmq.hub.pipeline.progress import Progress

GUEST = ("guest", "guest")
SCOPES = [{"read": "q/by-token"}, {"write": "x/by-token"}, {"manage": "write"}]


@pytest.fixture
def token(warren: WarrenServer) -> str:
    """Its scopes are for a stream, and the exchange that it is bound to."""
    with pika.BlockingConnection(pika.URLParameters(warren.amqp_url)) as connection:
        channel = connection.channel()
        stream = {"x-queue-type": "stream"}
        channel.queue_declare("by-token", durable=True, arguments=stream)
        channel.exchange_declare("by-token", "topic", durable=True)
        channel.queue_bind("by-token", "by-token", "#")
    made = httpx.post(
        f"{warren.http_url}/api/hub/tokens", json={"name": "job", "scopes": SCOPES}, auth=GUEST
    )
    return str(made.json()["token"])


def test_a_source_and_a_sink_take_a_token(
    spark: SparkSession, warren: WarrenServer, token: str, capfd: pytest.CaptureFixture[str]
) -> None:
    login = {"url": warren.http_url, "token": token}
    rows = spark.range(5).selectExpr("cast(id AS string) AS body")
    rows.write.format("warren").options(**login, exchange="by-token").mode("append").save()
    found = spark.read.format("warren").options(**login, stream="by-token").load()
    assert found.count() == 5
    found.explain(True)
    with pytest.raises(PySparkException, match="403 token 'job' has no scope to read") as refused:
        spark.read.format("warren").options(**login, stream="another").load().count()
    printed = "".join(capfd.readouterr())
    assert "stream" in printed
    assert token not in printed + str(refused.value) + warren.output()


def test_an_archive_takes_a_token(
    spark: SparkSession, warren: WarrenServer, token: str, tmp_path: Path
) -> None:
    job = find_job("archive")
    with pika.BlockingConnection(pika.URLParameters(warren.amqp_url)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.basic_publish("", "by-token", b"body")
    server = ServerLogin(warren.http_url, "", "", token)
    parameters = read_parameters(job, {"name": "cold"})
    task = Task(server, "/", "by-token", tmp_path, parameters, results="by-token")
    job.check(task)
    job.run(spark, task, Progress())
    known = httpx.get(f"{warren.http_url}/api/hub/pipeline", auth=GUEST).json()
    assert [one["archive"] for one in known["archives"]] == ["cold"]
    summary = spark.read.format("warren").options(**task.options()).load()
    assert [row.routing_key for row in summary.collect()][-1] == "archive"
