"""The Spark session of a bench run, and streams for it to read."""

from __future__ import annotations

import atexit
import contextlib
import json
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from pamqp.commands import Basic
from pamqp.common import FieldTable

from .brokers import Broker
from .client import Address, BenchError
from .flow import Exchange, Flow, Standing, fill
from .frames import STREAM, Message, Stream
from .http_client import basic
from .producer import Load

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "bench-stream"
EXCHANGE = "bench-x"
FILL_LIMIT_S = 120.0
VARIANTS = 8_192
KEYS = 1_000


@cache
def session() -> SparkSession:
    """Returns the session, which takes longer to start than most rows do."""
    from warrenmq.hub.pipeline.session import spark_session

    started = spark_session("bench", master="local[2]")
    atexit.register(started.stop)
    return started


def missing_spark() -> str | None:
    """Returns why Spark's rows can't run; None if they can."""
    from warrenmq.hub.pipeline.errors import PipelineError

    try:
        session()
    except PipelineError as error:
        return str(error)
    return None


def plain(number: int, body_bytes: int) -> Message:
    """A message with a key and a body of its own, as long as any other."""
    properties = Basic.Properties(content_type="application/json", delivery_mode=2)
    body = (b'{"n":%08d}' % number).ljust(body_bytes, b".")
    return Message(EXCHANGE, f"key.{number % KEYS:04}", body, properties.marshal())


def message(number: int, body_bytes: int) -> Message:
    """A message that has an id and headers of its own too."""
    headers: FieldTable = {"symbol": f"S{number % KEYS:04}", "source": f"feed-{number % 10}"}
    properties = Basic.Properties(
        content_type="application/json",
        headers=headers,
        delivery_mode=2,
        message_id=f"message-{number:08}",
    )
    return replace(plain(number, body_bytes), properties=properties.marshal())


def keyed(body_bytes: int) -> Stream:
    """Publishes that differ in key and body."""
    return Stream.join([plain(number, body_bytes).published() for number in range(VARIANTS)])


def varied(body_bytes: int) -> Stream:
    """Publishes that differ in everything."""
    return Stream.join([message(number, body_bytes).published() for number in range(VARIANTS)])


def standing(broker: Broker) -> Standing:
    """The stream, and the exchange that takes all keys to it."""
    fanout = Exchange(EXCHANGE, "fanout", ((NAME, ""),))
    return Standing(broker, Flow((NAME,), exchanges=(fanout,), durable=True, arguments=STREAM))


@contextlib.contextmanager
def filled(broker: Broker, publishes: Stream, count: int) -> Iterator[None]:
    """The stream with that many messages on disk."""
    with standing(broker):
        load = Load(FILL_LIMIT_S, limit=count)
        sent = fill(broker, Flow((NAME,), ((lambda: publishes, load),))).published
        if sent != count:
            raise BenchError(f"{sent} of {count} were published in {FILL_LIMIT_S:.0f} s")
        if broker.http is not None:
            wait_for(broker.http, count)
        yield


def wait_for(address: Address, count: int) -> None:
    """Returns when all are on disk."""
    deadline = time.monotonic() + FILL_LIMIT_S
    while (found := offsets(address)["next"]) != count:
        if time.monotonic() > deadline or found > count:
            raise BenchError(f"the stream has {found} messages, not {count}")
        time.sleep(0.01)


def offsets(address: Address) -> dict[str, Any]:
    url = f"http://{address.host}:{address.port}/streams/%2F/{NAME}/offsets"
    wanted = urllib.request.Request(url, headers={"Authorization": basic(address)})
    with urllib.request.urlopen(wanted, timeout=10) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def options(broker: Broker, **more: str) -> dict[str, str]:
    """Those of the data source."""
    address = broker.http
    assert address is not None
    url = f"http://{address.host}:{address.port}"
    return {"url": url, "user": address.user, "password": address.password, **more}


def scan(broker: Broker) -> None:
    """Reads the whole stream, every column."""
    reading = session().read.format("warren").options(**options(broker, stream=NAME))
    discard(reading.load())


def discard(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()
