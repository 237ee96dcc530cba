"""What jobs find in streams of a real server."""

from __future__ import annotations

import json
import random
import time
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pyspark.sql import DataFrame, Row, SparkSession

from tests.support.entries import near_copies
from tests.support.process import wait_until
from tests.support.server import WarrenServer
from warrenmq.hub.pipeline.errors import OptionError, OutputError
from warrenmq.hub.pipeline.jobs import merging
from warrenmq.hub.pipeline.jobs.job import RESULTS, Task, read_parameters
from warrenmq.hub.pipeline.jobs.near_duplicates import NAME as NEAR_DUPLICATES
from warrenmq.hub.pipeline.jobs.registry import find_job
from warrenmq.hub.pipeline.jobs.table import Table
from warrenmq.hub.pipeline.jobs.trending import trending
from warrenmq.hub.pipeline.manifest import Manifest, files
from warrenmq.hub.pipeline.options import ServerLogin
from warrenmq.hub.pipeline.progress import Progress, Report

STREAM = {"x-queue-type": "stream"}
WAIT_S = 30.0


@pytest.fixture
def channel(warren: WarrenServer) -> Iterator[BlockingChannel]:
    with pika.BlockingConnection(pika.URLParameters(warren.amqp_url)) as connection:
        yield connection.channel()


class Stream:
    """A stream that is bound to a topic exchange of its name."""

    def __init__(self, channel: BlockingChannel, name: str) -> None:
        self.name = name
        self._channel = channel
        channel.exchange_declare(name, "topic", durable=True)
        channel.queue_declare(name, durable=True, arguments=STREAM)
        channel.queue_bind(name, name, "#")
        channel.confirm_delivery()

    def publish(self, key: str, body: str | bytes, **properties: Any) -> None:
        self._channel.basic_publish(self.name, key, body, pika.BasicProperties(**properties))

    def read(self) -> list[tuple[str, str, dict[str, Any], bytes]]:
        """Returns all messages: exchange, routing key, headers and body."""
        self._channel.basic_qos(prefetch_count=100)
        found = []
        first = {"x-stream-offset": "first"}
        for method, properties, body in self._channel.consume(
            self.name, inactivity_timeout=1, arguments=first
        ):
            if method is None:
                break
            headers = {k: v for k, v in (properties.headers or {}).items() if k[0] != "x"}
            found.append((method.exchange, method.routing_key, headers, body))
            self._channel.basic_ack(method.delivery_tag)
        self._channel.cancel()
        return found


class Runner:
    """Runs jobs on one stream, with a directory for each job; `rows` and `lag` are what the last
    run has said at its end."""

    def __init__(
        self, spark: SparkSession, warren: WarrenServer, stream: str, top: Path,
        results: str | None = None,
    ) -> None:  # fmt: skip
        self._spark, self._warren, self._stream, self._top = spark, warren, stream, top
        self._results = results

    def directory(self, job: str) -> Path:
        return self._top / job

    def run(self, name: str, into: str | None = None, **parameters: str) -> DataFrame:
        """Returns the table of the job's directory, which has rows then."""
        directory = self.run_only(name, into, **parameters)
        return self._spark.read.parquet(*files(directory))

    def run_only(self, name: str, into: str | None = None, **parameters: str) -> Path:
        job = find_job(name)
        task = Task(
            ServerLogin(self._warren.http_url, "guest", "guest"), "/", self._stream,
            self.directory(into or name), read_parameters(job, parameters),
            results=self._results,
        )  # fmt: skip
        reports: list[Report] = []
        progress = Progress(reports.append)
        job.check(task)
        job.run(self._spark, task, progress)
        progress.end()
        self.rows, self.lag = reports[-1].rows, reports[-1].lag
        return task.directory


def newest(updates: DataFrame, *group: str) -> dict[Any, Row]:
    """Returns the row that holds of each group."""
    found = (
        updates.groupBy(*group).agg({"offset": "max"}).withColumnRenamed("max(offset)", "offset")
    )
    rows = updates.join(found, [*group, "offset"]).collect()
    return {tuple(row[name] for name in group): row for row in rows}


def has_rank(value: float, share: float, values: list[int]) -> bool:
    """Whether as many of the values are lower as the share says, within one in a hundred."""
    lower, higher = sum(one < value for one in values), sum(one <= value for one in values)
    return lower / len(values) - 0.01 <= share <= higher / len(values) + 0.01


@pytest.mark.thorough
def test_rollup_of_an_archive_counts_its_messages(
    spark: SparkSession, warren: WarrenServer, channel: BlockingChannel, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(merging, "MANY", 2)
    stream, chance = Stream(channel, "rolled"), random.Random(7)
    results = Stream(channel, "results")
    runner = Runner(spark, warren, stream.name, tmp_path, results.name)
    sent: dict[str, list[int]] = defaultdict(list)
    for number in range(600):
        size, key = chance.randrange(1000), f"key.{number % 2}"
        age = timedelta(hours=1) if number % 10 == 0 else timedelta()
        at = int((datetime.now(UTC) - age).timestamp())
        stream.publish(key, b"x" * size, timestamp=at)
        sent[key].append(size)
        if number in (200, 400):
            runner.run("rollup")
            assert (runner.rows, runner.lag) == (201 if number == 200 else 200, 0)
    counted = runner.run("rollup")
    assert (runner.rows, runner.lag) == (199, 0)
    sizes_of = [len(commit.files) for commit in Manifest(runner.directory("rollup")).commits]
    assert sizes_of == [1, 0, sizes_of[2]] and sizes_of[2]
    published = [(key, json.loads(body)) for _, key, _, body in results.read()]
    assert [key for key, _ in published] == ["rollup"] * counted.count()
    assert sorted(row["offset"] for _, row in published) == sorted(
        row.offset for row in counted.collect()
    )
    groups = newest(counted, "minute", "exchange", "routing_key")
    for key, sizes in sent.items():
        rows = [row for row in groups.values() if row.routing_key == key]
        assert {row.exchange for row in rows} == {"rolled"}
        assert sum(row.messages for row in rows) == len(sizes)
        assert sum(row.bytes for row in rows) == sum(sizes)
        assert sum(row.late for row in rows) == (60 if key == "key.0" else 0)
        if len(rows) == 1:
            assert has_rank(rows[0].size_p99, 0.99, sizes) and has_rank(
                rows[0].size_p50, 0.5, sizes
            )
            assert -1000 <= rows[0].age_p50_ms <= 60_000
    runner.run("rollup")
    assert (runner.rows, runner.lag) == (0, 0)
    runner.run("archive")
    stream.publish("key.0", "behind the archive")
    archive = str(runner.directory("archive"))
    whole = runner.run("rollup", "whole", archive=archive)
    assert (runner.rows, runner.lag) == (600, 1)
    assert newest(whole, "minute", "exchange", "routing_key") == groups
    assert runner.run("rollup", "whole", archive=archive).count() == whole.count()


@pytest.mark.thorough
def test_what_a_run_without_results_finds_is_merged_and_never_published(
    spark: SparkSession, warren: WarrenServer, channel: BlockingChannel, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(merging, "MANY", 2)
    results, server = Stream(channel, "found"), ServerLogin(warren.http_url, "guest", "guest")

    def add(exchange: str | None, numbers: range) -> None:
        task = Task(server, "/", "", tmp_path, None, results=exchange)
        table = Table(task, {"job": "finding"})
        for number in numbers:
            table.add(spark.createDataFrame([(number,)], "number int"), f"{number}")

    add(None, range(4))
    add(results.name, range(4, 7))
    add(None, range(7, 9))
    assert [json.loads(body)["number"] for *_, body in results.read()] == [4, 5, 6]
    sizes = [len(commit.files) for commit in Manifest(tmp_path).commits]
    assert sizes == [1, 0, 0, 0, 1, 0, 1, 1, 1]
    found = spark.read.parquet(*files(tmp_path)).collect()
    assert sorted(row.number for row in found) == list(range(9))


def test_delivery_health_is_a_plain_recount(
    spark: SparkSession, warren: WarrenServer, channel: BlockingChannel, tmp_path: Path
) -> None:
    stream, chance = Stream(channel, "tried"), random.Random(3)
    sent: dict[tuple[str | None, str | None], list[dict[str, Any]]] = defaultdict(list)
    for number in range(400):
        attempt: dict[str, Any] = {
            "subscription": f"sub_{number % 2}", "topic": f"topic.{number % 3}",
            "outcome": chance.choice(["delivered"] * 8 + ["retried", "dead", "gone"]),
            "latency_ms": chance.randrange(5000), "status": 200, "attempt": 1,
        }  # fmt: skip
        stream.publish("a", json.dumps(attempt))
        sent[attempt["subscription"], attempt["topic"]].append(attempt)
    stream.publish("a", b"\xff no attempt")
    sent[None, None].append({"outcome": None})
    runner = Runner(spark, warren, stream.name, tmp_path)
    counted = runner.run("delivery-health").collect()
    assert (runner.rows, runner.lag) == (401, 0)
    found = defaultdict(list)
    for row in counted:
        found[row.subscription, row.topic].append(row)
    assert found.keys() == sent.keys()
    for group, attempts in sent.items():
        outcomes = [one["outcome"] for one in attempts]
        assert sum(row.attempts for row in found[group]) == len(attempts)
        for name in ("delivered", "retried", "dead", "gone"):
            assert sum(row[name] for row in found[group]) == outcomes.count(name)
        if group != (None, None) and len(found[group]) == 1:
            (row,) = found[group]
            assert row.success_rate == outcomes.count("delivered") / len(attempts)
            latencies = [one["latency_ms"] for one in attempts]
            assert has_rank(row.latency_p50_ms, 0.5, latencies)
            assert has_rank(row.latency_p99_ms, 0.99, latencies)


def words(chance: random.Random, count: int) -> list[str]:
    return [f"word{chance.randrange(5000)}" for _ in range(count)]


def test_near_duplicates_are_found_once(
    spark: SparkSession, warren: WarrenServer, channel: BlockingChannel, tmp_path: Path
) -> None:
    stream, chance = Stream(channel, "entries"), random.Random(1)
    runner = Runner(spark, warren, stream.name, tmp_path)
    texts = [words(chance, 60) for _ in range(100)]
    for number, text in enumerate(texts):
        entry = {"id": f"e-{number}", "title": " ".join(text[:5]), "content": " ".join(text[5:])}
        stream.publish("feed", json.dumps(entry))
    assert not Manifest(runner.run_only("near-duplicates")).commits
    for number, text in enumerate(texts[:40]):
        copy = f"<p class='x'>{' '.join(text[:30]).upper()}</p> <b>new</b> {' '.join(text[31:])}"
        stream.publish("feed", copy, message_id=f"c-{number}")
    stream.publish("feed", json.dumps({"id": "e-99", "content": " ".join(texts[99])}))
    for _ in range(2):
        found = runner.run("near-duplicates").collect()
        assert (runner.rows, runner.lag) == (141, 0)
        assert {(row.first, row.second) for row in found} == {
            (f"e-{number}", f"c-{number}") for number in range(40)
        }
    assert {round(row.similarity, 3) for row in found} == {round(55 / 61, 3)}


@pytest.mark.thorough
def test_near_duplicates_of_ten_thousand_entries(
    spark: SparkSession, warren: WarrenServer, channel: BlockingChannel, tmp_path: Path
) -> None:
    texts, alike = near_copies(10_000, share=10, seed=3)
    stream = Stream(channel, "many-entries")
    with channel.connection.channel() as at_once:  # One commit, in place of a confirm for each.
        at_once.tx_select()
        for text in texts:
            at_once.basic_publish(stream.name, "feed", text)
        at_once.tx_commit()
    found = Runner(spark, warren, stream.name, tmp_path).run("near-duplicates").collect()
    pairs = {(row.first_offset, row.second_offset): row.similarity for row in found}
    wanted = {pair: share for pair, share in alike.items() if share >= 0.7}
    assert len(wanted) > 700 and len(alike) - len(wanted) > 200
    assert len(pairs.keys() & wanted.keys()) >= 0.95 * len(wanted)
    # Each is compared exactly before it is in the table.
    assert pairs == {pair: pytest.approx(wanted.get(pair)) for pair in pairs}


def test_an_output_leaves_out_the_near_duplicates_that_a_run_finds(
    spark: SparkSession, warren: WarrenServer, channel: BlockingChannel, tmp_path: Path
) -> None:
    stream, chance = Stream(channel, "wire"), random.Random(5)
    channel.exchange_declare(RESULTS, "topic", durable=True)
    with httpx.Client(base_url=warren.http_url, auth=("guest", "guest")) as http:
        sources, leaving_out = [{"exchange": stream.name}], {"drop_near_duplicates": True}
        wanted = {"sources": sources, "filter": leaving_out}
        assert http.put("/api/hub/outputs/clean", json=wanted).is_success
        story, other = words(chance, 60), words(chance, 60)
        for name, text in (("a", story), ("b", [*story[:50], "now"]), ("c", other)):
            item = {"id": name, "title": name, "content_text": " ".join(text)}
            stream.publish("feed", json.dumps(item))

        def names() -> set[str]:
            return {item["title"] for item in http.get("/feeds/clean.json").json()["items"]}

        wait_until(lambda: names() == {"a", "b", "c"}, WAIT_S, "three items")
        Runner(spark, warren, stream.name, tmp_path, RESULTS).run_only(NEAR_DUPLICATES)
        wait_until(lambda: names() == {"a", "c"}, WAIT_S, "the item without its near-duplicate")


def test_terms_that_come_up_are_trending(
    spark: SparkSession, warren: WarrenServer, channel: BlockingChannel, tmp_path: Path
) -> None:
    stream = Stream(channel, "talked-about")
    for number in range(12):
        stream.publish("feed", f"Rabbit, rabbit no{number}" + " WARREN" * (number < 5))
    runner = Runner(spark, warren, stream.name, tmp_path)
    found = runner.run("trending", least="5").collect()
    assert (runner.rows, runner.lag) == (12, 0)
    assert [(row.term, row.documents, row.expected) for row in found] == [
        ("rabbit", 12, 0.0), ("warren", 5, 0.0),
    ]  # fmt: skip


@pytest.mark.thorough
def test_terms_that_are_as_frequent_as_before_are_not(spark: SparkSession) -> None:
    """A window of 100 s behind 300 s of documents, one a second, and another long before."""
    until = datetime(2026, 1, 31, 12, tzinfo=UTC)
    texts = [(age, "usual" + " rising" * (age < 20 or age > 390)) for age in range(400)]
    rows = [
        (until - timedelta(seconds=age), text) for age, text in [*texts, (90_000, "rising " * 99)]
    ]
    documents = spark.createDataFrame(rows, "timestamp timestamp, text string")
    until_us = int(until.timestamp()) * 1_000_000
    (term,) = trending(documents, until_us, 100, 300, 3, 10).collect()
    assert (term.term, term.documents, term.expected) == ("rising", 20, pytest.approx(3))


def test_an_archive_is_replayed_once(
    spark: SparkSession, warren: WarrenServer, channel: BlockingChannel, tmp_path: Path
) -> None:
    stream, target = Stream(channel, "past"), Stream(channel, "present")
    runner = Runner(spark, warren, stream.name, tmp_path)
    for number in range(300):
        stream.publish(f"k.{number % 3}", str(number), headers={"n": str(number)})
    archive = str(runner.run_only("archive"))
    given = {"archive": archive, "to": target.name, "tx_id": "once"}
    runner.run_only("replay", rate="400", end="120", **given)
    began_s = time.monotonic()
    runner.run_only("replay", rate="100", **given)
    # The last transaction is published when it is due, and not when the next one would be.
    assert time.monotonic() - began_s >= (180 - 10) / 100
    assert (runner.rows, runner.lag) == (180, 0)
    runner.run_only("replay", rate="1000000", **given)
    assert (runner.rows, runner.lag) == (0, 0)
    for _ in range(2):  # Without a name it is published each time.
        runner.run_only("replay", rate="1000000", archive=archive, to=target.name, start="299")
        assert (runner.rows, runner.lag) == (1, 0)
    assert target.read() == [
        ("present", f"k.{number % 3}", {"n": str(number)}, str(number).encode())
        for number in [*range(300), 299, 299]
    ]


@pytest.mark.parametrize(
    ("job", "given", "reason"),
    [
        ("rollup", {"archive": "/nowhere"}, "archive='/nowhere' is no archive"),
    ],
)
def test_refusals(
    spark: SparkSession, warren: WarrenServer, channel: BlockingChannel, tmp_path: Path,
    job: str, given: dict[str, str], reason: str,
) -> None:  # fmt: skip
    runner = Runner(spark, warren, Stream(channel, "refused").name, tmp_path)
    with pytest.raises((OptionError, OutputError), match=reason):
        runner.run(job, **given)
