"""Streams over HTTP where the engine is a RabbitMQ (docs/scaling.md): tests of `test_streams.py` as
they are, and what differs there."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import httpx
import pytest

from tests.app.support import problem
from tests.support.chunks import chunks, rows
from tests.support.hub_on_rabbitmq import HubOnRabbitMQ
from tests.support.process import wait_until
from tests.support.rabbitmq import RabbitMQServer
from tests.support.server import WarrenServer
from tests.support.streams import LiveStream
from warrenmq.app.cli import run

from .raw import Channel
from .test_streams import (
    BODIES,
    STREAM,
    http,
    offsets,
    path,
    publish,
    read,
    stream,
    test_a_range_behind_the_end_is_refused,
    test_a_range_of_bytes,
    test_arrow,
    test_arrow_is_refused_as_chunks_are,
    test_chunks_have_the_requested_offsets,
    test_conditional_and_head_requests,
    test_each_answer_continues_where_the_last_one_ended,
    test_invalid_requests_are_refused,
    test_other_ranges_are_ignored,
    test_refused_chunks,
)

__all__ = [
    "http",
    "stream",
    "test_a_range_behind_the_end_is_refused",
    "test_a_range_of_bytes",
    "test_arrow",
    "test_arrow_is_refused_as_chunks_are",
    "test_chunks_have_the_requested_offsets",
    "test_conditional_and_head_requests",
    "test_each_answer_continues_where_the_last_one_ended",
    "test_invalid_requests_are_refused",
    "test_other_ranges_are_ignored",
    "test_refused_chunks",
]

pytestmark = pytest.mark.differs("has no such interface")


@pytest.fixture(scope="module")
def warren(node: RabbitMQServer) -> Iterator[WarrenServer]:
    with HubOnRabbitMQ(node) as server:
        yield server
        assert "Traceback" not in server.output(), server.output()


@pytest.fixture(scope="module")
def amqp_port(node: RabbitMQServer) -> int:
    return node.port


def test_offsets_and_incarnation(http: httpx.Client, stream: str, warren: WarrenServer) -> None:
    found = offsets(http, stream)
    assert (found["first"], found["next"], found["bytes"]) == (0, 10, None)
    warren.restart()
    http.base_url = warren.http_url
    assert offsets(http, stream) == found


def test_what_the_hub_publishes_has_its_time(
    http: httpx.Client, channel: Channel, name: str
) -> None:
    channel.declare(name, durable=True, arguments=STREAM)
    publish(channel, name, BODIES[:1])  # by a program: nothing tells its time
    before_s = int(datetime.now(UTC).timestamp())
    assert http.post(f"/endpoint/q/{name}", content=b"of the hub").status_code == 202
    program, hub = chunks(read(http, path(name), 0).content)
    assert program.arrived_ms == 0 and before_s <= hub.arrived_ms / 1000 <= before_s + 60
    [row] = hub.rows
    assert (row.exchange, row.routing_key, row.body) == ("", "", b"of the hub")
    assert b"x-hub" not in row.properties and b"x-stream-offset" not in row.properties
    assert offsets(http, path(name), timestamp="2001-01-01")["at"] == 0
    assert offsets(http, path(name), timestamp="2999-01-01")["at"] == 2
    assert offsets(http, path(name), start=0, max_bytes=10**9)["limit"] == 2


def test_offsets_are_found_by_time(http: httpx.Client, channel: Channel, name: str) -> None:
    channel.declare(name, durable=True, arguments=STREAM)
    assert http.post(f"/endpoint/q/{name}", content=b"of the hub").status_code == 202
    [message] = chunks(read(http, path(name), 0).content)
    for later_s, at in ((-1, 0), (1, 1)):
        moment = datetime.fromtimestamp(message.arrived_ms // 1000 + later_s, UTC)
        assert offsets(http, path(name), timestamp=moment.isoformat())["at"] == at


def test_timestamps_of_programs(http: httpx.Client, channel: Channel, name: str) -> None:
    """In seconds, as AMQP has them, in milliseconds, as many give them, and of no use."""
    channel.declare(name, durable=True, arguments=STREAM)
    channel.call("Confirm.Select")
    for timestamp in (1_700_000_000, 1_700_000_001_123, 2**63 - 1):
        channel.publish(b"", {"timestamp": timestamp}, routing_key=name)
        channel.expect("Basic.Ack")
    found = [one.arrived_ms for one in chunks(read(http, path(name), 0).content)]
    assert found == [1_700_000_000_000, 1_700_000_001_000, 0]


def test_a_live_reader_replays_a_stream(http: httpx.Client, channel: Channel, name: str) -> None:
    channel.declare(name, durable=True, arguments=STREAM)
    publish(channel, name, BODIES)
    url = f"{http.base_url}/stream/q/{name}"
    with LiveStream(f"{url}?cursor=first", sse=True) as live:
        events = live.take(10)
        publish(channel, name, [b"later"])
        assert live.next()["data"]["body"] == "later"
    assert [one["data"]["body"].encode() for one in events] == BODIES
    with LiveStream(url, sse=True, last_event_id=events[4]["id"]) as live:
        assert live.next() == events[5]


def test_dropped_and_recreated_streams(http: httpx.Client, channel: Channel, name: str) -> None:
    short = STREAM | {"x-max-length-bytes": 2_000, "x-stream-max-segment-size-bytes": 1_000}
    channel.declare(name, durable=True, arguments=short)
    publish(channel, name, [bytes(300)] * 30)
    found = offsets(http, path(name))
    answer = http.get(f"{path(name)}/chunks?start=0")
    assert found["first"] > 0 and "dropped by its retention" in problem(answer, 410)
    channel.call("Queue.Delete", queue=name)
    assert "no queue" in problem(http.get(f"{path(name)}/offsets"), 404)
    channel.declare(name, durable=True, arguments=STREAM)
    query = {"start": 0, "incarnation": found["incarnation"]}
    assert "declared again" in problem(http.get(f"{path(name)}/chunks", params=query), 410)


def test_an_exchange_is_captured(
    warren: WarrenServer, http: httpx.Client, channel: Channel, name: str
) -> None:
    """The command asks RabbitMQ's management API, which the hub names."""
    command = ["pipeline", "capture", "x", "amq.topic", "--stream", name, "--key", "a.#"]
    login = ["--url", warren.http_url]
    assert run([*command, *login]) == 0
    publish(channel, "a.b", BODIES, "amq.topic")
    capture = {
        "vhost": "/", "exchange": "amq.topic", "routing_key": "a.#", "stream": name, "first": 0,
        "next": 10,
    }  # fmt: skip
    assert capture in http.get("/api/hub/pipeline").json()["captures"]
    assert [row.body for row in rows(read(http, path(name), 0).content)] == BODIES
    assert run([*command, "--stop", *login]) == 0
    assert http.get("/api/hub/pipeline").json()["captures"] == []
    archive = http.put(f"/api/hub/pipeline/archives/%2F/{name}/cold", json={"offset": 5})
    assert "retention" in problem(archive, 501)


def test_an_output_reads_a_stream(http: httpx.Client, channel: Channel, name: str) -> None:
    channel.declare(name, durable=True, arguments=STREAM)
    publish(channel, name, [b'{"id": "1", "title": "one"}'])
    made = http.put(f"/api/hub/outputs/{name}", json={"sources": [{"stream": name}]})
    assert made.status_code == 201, made.text

    def titles() -> list[str]:
        items = http.get(f"/feeds/{name}.json").json()["items"]
        return [one["title"] for one in items]

    wait_until(lambda: titles() == ["one"], 30.0, "the item")
    publish(channel, name, [b'{"id": "2", "title": "two"}'])
    wait_until(lambda: titles() == ["two", "one"], 30.0, "the next item")
