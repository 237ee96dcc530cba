"""Spark reads streams of a real server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from tests.support.server import WarrenServer

STREAM = {"x-queue-type": "stream"}


@pytest.fixture
def channel(warren: WarrenServer) -> Iterator[BlockingChannel]:
    with pika.BlockingConnection(pika.URLParameters(warren.amqp_url)) as connection:
        yield connection.channel()


def publish(channel: BlockingChannel, stream: str, numbers: range) -> None:
    """Publishes messages whose bodies are their numbers, and waits until they are on disk."""
    channel.queue_declare(stream, durable=True, arguments=STREAM)
    channel.confirm_delivery()
    for number in numbers:
        properties = pika.BasicProperties(message_id=f"m-{number}", headers={"n": number})
        channel.basic_publish("", stream, str(number).encode(), properties)


def options(warren: WarrenServer, stream: str, **more: str) -> dict[str, str]:
    return {"url": warren.http_url, "stream": stream, **more}


def load(spark: SparkSession, warren: WarrenServer, stream: str, **more: str) -> DataFrame:
    return spark.read.format("warren").options(**options(warren, stream, **more)).load()


def bodies(frame: DataFrame) -> list[bytes]:
    return [bytes(row.body) for row in frame.orderBy("offset").collect()]


def expected(numbers: range) -> list[bytes]:
    return [str(number).encode() for number in numbers]


def test_a_row_has_all_that_was_published(
    spark: SparkSession, warren: WarrenServer, channel: BlockingChannel
) -> None:
    kept = {"x-persist-messages": 100}
    channel.exchange_declare("rows", "topic", durable=True, arguments=kept)
    channel.confirm_delivery()
    sent = datetime(2026, 1, 31, 12, tzinfo=UTC)
    properties = pika.BasicProperties(
        content_type="application/json", content_encoding="gzip", delivery_mode=2, priority=4,
        headers={"text": "ü", "number": -3, "nested": {"a": [True]}}, correlation_id="c",
        reply_to="r", expiration="60000", message_id="m", timestamp=int(sent.timestamp()),
        type="t", user_id="guest", app_id="a",
    )  # fmt: skip
    channel.basic_publish("rows", "a.b", b"\xff{}", properties)
    channel.basic_publish("rows", "plain", b"x" * 300_000)
    began = datetime.now(UTC)
    full, plain = load(spark, warren, "rows", source="exchange").orderBy("offset").collect()
    assert full.asDict() | {"timestamp": None} == {
        "stream": "rows", "offset": 0, "timestamp": None, "exchange": "rows",
        "routing_key": "a.b", "message_id": "m", "content_type": "application/json",
        "headers": {"text": "ü", "number": "-3", "nested": '{"a":[true]}', "x-offset": "0"},
        "body": b"\xff{}",
        "content_encoding": "gzip", "delivery_mode": 2, "priority": 4, "correlation_id": "c",
        "reply_to": "r", "expiration": "60000", "message_timestamp": full.message_timestamp,
        "type": "t", "user_id": "guest", "app_id": "a",
    }  # fmt: skip
    assert full.message_timestamp.timestamp() == sent.timestamp()
    assert abs(full.timestamp.timestamp() - began.timestamp()) < 60
    assert (plain.routing_key, bytes(plain.body)) == ("plain", b"x" * 300_000)
    assert (plain.headers, plain.message_id) == ({"x-offset": "1"}, None)


@pytest.mark.parametrize("pushed", [False, True])
def test_filters_are_used_where_spark_hands_them_over(
    spark: SparkSession,
    warren: WarrenServer,
    channel: BlockingChannel,
    push_filters: Callable[[bool], None],
    pushed: bool,
) -> None:
    stream = f"filtered-{pushed}"
    publish(channel, stream, range(40))
    push_filters(pushed)
    frame = load(spark, warren, stream, minPartitions="4")
    found = frame.where((col("offset") >= 30) & (col("offset") < 32))
    assert bodies(found) == expected(range(30, 32))
    assert found.rdd.getNumPartitions() == (3 if pushed else 4)
    arrived = frame.where("offset = 20").first()
    assert arrived is not None
    same = frame.where(col("timestamp") == arrived.timestamp)
    assert b"20" in bodies(same)
    assert bodies(frame.where(col("timestamp") > datetime(2100, 1, 1))) == []


def test_columns_can_be_chosen_by_a_schema(
    spark: SparkSession, warren: WarrenServer, channel: BlockingChannel
) -> None:
    publish(channel, "columns", range(3))
    reading = spark.read.format("warren").options(**options(warren, "columns", startingOffset="1"))
    frame = reading.schema("message_id string, offset bigint").load()
    assert [tuple(row) for row in frame.orderBy("offset").collect()] == [("m-1", 1), ("m-2", 2)]


def follow(
    spark: SparkSession, warren: WarrenServer, stream: str, place: Path, **more: str
) -> list[dict[str, Any]]:
    """Takes a stream to Parquet, as far as it goes; returns the progress of each micro-batch."""
    reading = spark.readStream.format("warren").options(**options(warren, stream, **more))
    writing = reading.load().writeStream.format("parquet").option("path", str(place / "rows"))
    query = (
        writing.option("checkpointLocation", str(place / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination(60)
        return [json.loads(progress.json) for progress in query.recentProgress]
    finally:
        query.stop()


def test_a_query_follows_in_small_batches_and_resumes_from_its_checkpoint(
    spark: SparkSession, warren: WarrenServer, channel: BlockingChannel, tmp_path: Path
) -> None:
    publish(channel, "followed", range(25))
    progress = follow(spark, warren, "followed", tmp_path, maxRowsPerTrigger="10")
    assert [one["numInputRows"] for one in progress if one["numInputRows"]] == [10, 10, 5]
    ends = [one["sources"][0] for one in progress][:3]
    assert [end["endOffset"]["followed"] for end in ends] == [10, 20, 25]
    assert [end["latestOffset"]["followed"] for end in ends] == [25, 25, 25]
    publish(channel, "followed", range(25, 30))
    follow(spark, warren, "followed", tmp_path, maxBytesPerTrigger="1000000")
    assert bodies(spark.read.parquet(str(tmp_path / "rows"))) == expected(range(30))


def test_a_stream_that_was_made_again_is_not_followed(
    spark: SparkSession, warren: WarrenServer, channel: BlockingChannel, tmp_path: Path
) -> None:
    publish(channel, "again", range(3))
    follow(spark, warren, "again", tmp_path)
    channel.queue_delete("again")
    publish(channel, "again", range(9))
    with pytest.raises(PySparkException, match="'again' .* was deleted and made again"):
        follow(spark, warren, "again", tmp_path)
    assert bodies(spark.read.parquet(str(tmp_path / "rows"))) == expected(range(3))


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"stream": "nothing"}, "404 .*'nothing'"),
        (
            {"stream": "classic"},
            "409 .*queue 'classic' in vhost '/' is of type classic, not stream",
        ),
        ({"password": "wrong"}, "401 wrong user or password"),
        ({"vhost": "elsewhere"}, "40[34] .*'elsewhere'"),
        ({"startingOffset": "1000"}, "startingOffset=1000: stream 'refused' .* ends at offset"),
        ({"failOnDataLos": "true"}, "did you mean 'failOnDataLoss'"),
    ],
)
def test_refusals_say_why(
    spark: SparkSession,
    warren: WarrenServer,
    channel: BlockingChannel,
    given: dict[str, str],
    reason: str,
) -> None:
    publish(channel, "refused", range(1))
    channel.queue_declare("classic", durable=True)
    with pytest.raises(PySparkException, match=reason):
        load(spark, warren, **{"stream": "refused", **given}).collect()
