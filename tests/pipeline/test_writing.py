"""Spark publishes to a real server, exactly once."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pika
import pyarrow as pa
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, udf
from pyspark.sql.types import StringType

from tests.support.process import wait_until
from tests.support.server import WarrenServer
from warrenmq.hub.pipeline.errors import OptionError, ReadError, SchemaError
from warrenmq.hub.pipeline.options import ServerLogin
from warrenmq.hub.pipeline.rows_format import encode, pieces
from warrenmq.hub.pipeline.transactions import TransactionClient
from warrenmq.hub.pipeline.writer import ExchangeWriter, StagedPartition

STREAM = {"x-queue-type": "stream"}
PATIENCE_S = 60.0
LAST = 19_999


def connect(warren: WarrenServer) -> pika.BlockingConnection:
    return pika.BlockingConnection(pika.URLParameters(warren.amqp_url))


@pytest.fixture
def channel(warren: WarrenServer) -> Iterator[BlockingChannel]:
    with connect(warren) as connection:
        yield connection.channel()


def options(warren: WarrenServer, **more: str) -> dict[str, str]:
    return {"url": warren.http_url, "exchange": "", **more}


def write(frame: DataFrame, warren: WarrenServer, **more: str) -> None:
    frame.write.format("warren").options(**options(warren, **more)).mode("append").save()


def numbers(spark: SparkSession, count: int) -> DataFrame:
    return spark.range(count, numPartitions=2).select(col("id").cast("string").alias("body"))


def bodies(channel: BlockingChannel, queue: str) -> list[str]:
    found = []
    while (got := channel.basic_get(queue, auto_ack=True))[0] is not None:
        assert got[2] is not None
        found.append(got[2].decode())
    return sorted(found)


def staged(warren: WarrenServer) -> list[Path]:
    return list((warren.data / "transactions").rglob("*-*-*"))


def test_rows_arrive_as_they_were_written(
    spark: SparkSession, warren: WarrenServer, channel: BlockingChannel
) -> None:
    channel.queue_declare("rows", durable=True)
    sent = datetime(2026, 1, 31, 12, tzinfo=UTC)
    properties = {
        "content_type": "text/plain", "content_encoding": "gzip", "headers": {"a": "ü", "b": None},
        "delivery_mode": 1, "priority": 4, "correlation_id": "c", "reply_to": "r",
        "expiration": "60000", "message_id": "m", "type": "t", "user_id": "guest", "app_id": "a",
    }  # fmt: skip
    row = {"body": b"\xff{}", "routing_key": "rows", "message_timestamp": sent, **properties}
    kinds = {
        "body": "binary", "headers": "map<string,string>", "delivery_mode": "int",
        "priority": "int", "message_timestamp": "timestamp",
    }  # fmt: skip
    schema = ", ".join(f"{name} {kinds.get(name, 'string')}" for name in row)
    frame = spark.createDataFrame([row, {"body": b"plain"}], schema).coalesce(1)
    write(frame, warren, routingKey="rows")
    full, plain = (channel.basic_get("rows", auto_ack=True) for _ in range(2))
    assert (full[2], plain[2]) == (b"\xff{}", b"plain")
    found = {name: value for name, value in vars(full[1]).items() if value is not None}
    assert found == {**properties, "timestamp": int(sent.timestamp())}
    assert {name: value for name, value in vars(plain[1]).items() if value is not None} == {
        "delivery_mode": 2
    }


@pytest.mark.parametrize("tx_id", [{}, {"txId": "daily"}])
def test_with_an_id_a_write_is_published_once(
    spark: SparkSession, warren: WarrenServer, channel: BlockingChannel, tx_id: dict[str, str]
) -> None:
    channel.queue_declare("once", durable=True)
    for _ in range(2):
        write(numbers(spark, 5), warren, routingKey="once", **tx_id)
    assert bodies(channel, "once") == [*("01234" if tx_id else "0011223344")]
    assert staged(warren) == []


def test_the_numbers_of_an_id_go_up(
    spark: SparkSession, warren: WarrenServer, channel: BlockingChannel
) -> None:
    channel.queue_declare("versions", durable=True)
    for version in ("1", "2", "1", "2"):
        numbered = numbers(spark, int(version))
        write(numbered, warren, routingKey="versions", txId="nightly", txVersion=version)
    assert bodies(channel, "versions") == [*"001"]


def test_rows_for_no_queue_are_logged(
    warren: WarrenServer, caplog: pytest.LogCaptureFixture
) -> None:
    """As the driver does when tasks have staged them."""
    writer = ExchangeWriter(options(warren, txId="lost"), {"body": "string"}, overwrite=False)
    rows = encode(pa.record_batch({"body": pa.array("abc")}), "no-such-queue")
    client = TransactionClient(ServerLogin(warren.http_url, "guest", "guest"), "/", "")
    for at, piece in enumerate(pieces([rows])):
        client.stage("tx-lost", 0, 0, 7, at, piece)
    client.close()
    writer.commit([StagedPartition("tx-lost", 0, 7, 1)])
    assert "3 rows are lost: their routing keys are no names of queues" in caplog.text


def test_rows_for_a_queue_wait_until_it_is_there(
    warren: WarrenServer, channel: BlockingChannel
) -> None:
    """As the driver does when tasks have staged them."""
    given = {"url": warren.http_url, "queue": "to-come", "txId": "early"}
    writer = ExchangeWriter(given, {"body": "string"}, overwrite=False)
    rows = encode(pa.record_batch({"body": pa.array("abc")}), "to-come")
    client = TransactionClient(ServerLogin(warren.http_url, "guest", "guest"), "/", "")
    for at, piece in enumerate(pieces([rows])):
        client.stage("tx-early", 0, 0, 7, at, piece)
    client.close()
    with pytest.raises(ReadError, match="404 no queue 'to-come'"):
        writer.commit([StagedPartition("tx-early", 0, 7, 1)])
    channel.queue_declare("to-come", durable=True)
    writer.commit([StagedPartition("tx-early", 0, 7, 1)])
    assert bodies(channel, "to-come") == [*"abc"]


@pytest.mark.parametrize(
    ("given", "columns", "reason"),
    [
        ({}, "body", "give .option('exchange', 'news') or .option('queue', 'jobs'): none is given"),
        ({"queue": "q", "exchange": "x"}, "body", "both are given"),
        ({"queue": "q", "routingKey": "k"}, "body", "routingKey beside queue"),
        ({"queue": "q"}, "body routing_key", "column 'routing_key' beside option queue='q'"),
    ],
)
def test_rows_go_to_an_exchange_or_a_queue(
    given: dict[str, str], columns: str, reason: str
) -> None:
    url = {"url": "http://localhost:1"}
    with pytest.raises((OptionError, SchemaError)) as caught:
        ExchangeWriter(url | given, dict.fromkeys(columns.split(), "string"), overwrite=False)
    assert reason in str(caught.value)


@pytest.mark.thorough
def test_a_write_that_nobody_repeats_is_not_remembered(spark: SparkSession) -> None:
    with WarrenServer(args=["--access-log"]) as server:
        with connect(server) as connection:
            connection.channel().queue_declare("once", durable=True)
        for given in ({}, {"txId": "daily"}):
            write(numbers(spark, 1), server, routingKey="once", **given)
        server.stop()
        assert re.findall(r'"DELETE /transactions/([a-z]+)-', server.output()) == ["write"]


def follow(
    spark: SparkSession, warren: WarrenServer, stream: str, queue: str, checkpoint: Path,
    **limits: str,
) -> None:  # fmt: skip
    """Publishes what is new in a stream to a queue, in one micro-batch unless `limits` say less."""
    reading = spark.readStream.format("warren").option("url", warren.http_url).options(**limits)
    frame = reading.option("stream", stream).load().select("body", "message_id")
    writing = frame.writeStream.format("warren").options(**options(warren, routingKey=queue))
    query = (
        writing.queryName(queue)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination(int(PATIENCE_S))
    finally:
        query.stop()


def test_a_batch_that_is_run_again_publishes_nothing(
    spark: SparkSession, warren: WarrenServer, channel: BlockingChannel, tmp_path: Path
) -> None:
    channel.queue_declare("numbers", durable=True, arguments=STREAM)
    channel.queue_declare("followed", durable=True)
    write(numbers(spark, 5), warren, routingKey="numbers")
    follow(spark, warren, "numbers", "followed", tmp_path)
    write(numbers(spark, 3), warren, routingKey="numbers")
    follow(spark, warren, "numbers", "followed", tmp_path)
    assert bodies(channel, "followed") == [*"00112234"]
    newest = max((tmp_path / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    newest.unlink()
    newest.with_name(f".{newest.name}.crc").unlink()
    write(numbers(spark, 1), warren, routingKey="numbers")
    follow(spark, warren, "numbers", "followed", tmp_path)
    assert bodies(channel, "followed") == ["0"]
    assert staged(warren) == []


@pytest.mark.thorough
def test_a_batch_that_is_too_large_can_be_planned_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    small = WarrenServer(env={"WARREN_MAX_TRANSACTION_BYTES": "3000"})
    with small as server, connect(server) as connection:
        channel = connection.channel()
        channel.queue_declare("many", durable=True, arguments=STREAM)
        channel.queue_declare("published", durable=True)
        for _ in range(2):
            write(numbers(spark, 10), server, routingKey="many")
        with pytest.raises(PySparkException, match="delete .* and give a smaller") as refused:
            follow(spark, server, "many", "published", tmp_path)
        for path in set(re.findall(rf"{tmp_path}/offsets/\S+?(?=,| and)", str(refused.value))):
            Path(path).unlink()
        follow(spark, server, "many", "published", tmp_path, maxRowsPerTrigger="10")
        assert bodies(channel, "published") == sorted([*"0123456789"] * 2)


def test_rows_of_attempts_that_failed_are_not_published(
    spark: SparkSession, warren: WarrenServer, channel: BlockingChannel, tmp_path: Path
) -> None:
    """A task fails at its last row, when it has staged others, and is run again."""
    channel.queue_declare("attempts", durable=True)
    mark = str(tmp_path / "failed")
    fail = udf(lambda number: (number == LAST and fail_once(mark)) or "x" * 1_000, StringType())
    frame = spark.range(LAST + 1, numPartitions=2)
    rows = frame.select(fail("id").alias("body"), col("id").cast("string").alias("message_id"))
    write(rows, warren, routingKey="attempts", txId="attempts")
    assert Path(mark).exists() and staged(warren) == []
    assert channel.queue_declare("attempts", passive=True).method.message_count == LAST + 1


def fail_once(mark: str) -> str:
    if not os.path.exists(mark):
        Path(mark).touch()
        raise ValueError("the first attempt fails")
    return "at last"


def test_staged_rows_survive_a_kill_of_the_server(spark: SparkSession, tmp_path: Path) -> None:
    """The server is killed when one task has staged its rows and the other waits."""
    mark = str(tmp_path / "restarted")
    wait = udf(lambda number: wait_for(mark) if number == 9 else str(number), StringType())
    with WarrenServer() as server, ThreadPoolExecutor(1) as pool:
        with connect(server) as connection:
            connection.channel().queue_declare("kept", durable=True)

        def restart() -> None:
            wait_until(lambda: bool(staged(server)), PATIENCE_S, "rows are staged")
            server.kill()
            Path(mark).touch()
            server.start()

        restarted = pool.submit(restart)
        rows = spark.range(10, numPartitions=2).select(wait("id").alias("body"))
        write(rows, server, routingKey="kept")
        restarted.result()
        with connect(server) as connection:
            assert bodies(connection.channel(), "kept") == [*"012345678", "9 at last"]


def wait_for(mark: str) -> str:
    wait_until(lambda: os.path.exists(mark), PATIENCE_S, "the restart of the server")
    return "9 at last"


def test_a_full_queue_is_waited_for(
    spark: SparkSession, warren: WarrenServer, channel: BlockingChannel
) -> None:
    arguments = {"x-max-length": 4, "x-overflow": "reject-publish"}
    channel.queue_declare("full", durable=True, arguments=arguments)
    write(numbers(spark, 1), warren, routingKey="full")

    before = len(staged(warren))

    def make_room() -> None:
        wait_until(lambda: len(staged(warren)) >= before + 2, PATIENCE_S, "rows are staged")
        with connect(warren) as connection:
            connection.channel().queue_purge("full")

    with ThreadPoolExecutor(1) as pool:
        made = pool.submit(make_room)
        write(numbers(spark, 4), warren, routingKey="full")
        made.result()
    assert bodies(channel, "full") == [*"0123"]


@pytest.mark.parametrize(
    ("expression", "given", "reason"),
    [
        ("id AS body", {}, "column 'body' is bigint, to be published it has to be binary or str"),
        ("'a' AS bodi", {}, "column 'bodi' can't be published: a message has body, routing_key"),
        ("'a' AS routing_key", {}, "the column 'body' is missing among routing_key"),
        ("nullif('a', 'a') AS body", {}, "column 'body' is null in a row"),
        ("'a' AS body; repeat('k', 256) AS routing_key", {}, "'routing_key' has a text of 256"),
        ("'a' AS body; 256 AS priority", {}, "column 'priority' is 256 in a row; 0 to 255 can"),
        ("'a' AS body; 'soon' AS expiration", {}, "invalid expiration 'soon': milliseconds"),
        ("'a' AS body", {"exchange": "nowhere"}, "404 no exchange 'nowhere' in vhost '/'"),
        ("'a' AS body", {"vhost": "nowhere"}, "no vhost 'nowhere'"),
        ("'a' AS body", {"password": "wrong"}, "401 wrong user or password"),
        ("'a' AS body", {"user": "reader", "password": "a-reader's"}, "403 .*refused"),
        ("'a' AS body", {"routingkey2": "a"}, "did you mean 'routingKey'"),
        ("'a' AS body", {"txId": ""}, "txId has 0 bytes: give 1 to 150"),
        ("'a' AS body", {"txVersion": "1"}, "txVersion=1: it numbers the writes of a txId"),
        ("'a' AS body", {"txId": "a", "txVersion": "-1"}, "give a whole number of 0 or more"),
    ],
)
def test_refusals_say_why(
    spark: SparkSession, warren: WarrenServer, expression: str, given: dict[str, str], reason: str
) -> None:
    http = httpx.Client(base_url=warren.http_url, auth=("guest", "guest"))
    with http:
        http.put("/api/users/reader", json={"password": "a-reader's", "tags": ""})
        rights = {"configure": "", "write": "", "read": ".*"}
        http.put("/api/permissions/%2F/reader", json=rights)
    with pytest.raises((PySparkException, Py4JJavaError), match=reason):
        write(spark.range(1).selectExpr(*expression.split("; ")), warren, **given)
    assert staged(warren) == []
