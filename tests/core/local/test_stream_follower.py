"""Reading a stream inside this process, without consuming it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.core.life import Life
from tests.support.amqp import Client, make_broker, take_turns
from warrenmq.core.broker import Broker
from warrenmq.core.local.publisher import LocalPublisher
from warrenmq.core.local.reader import MessageReader
from warrenmq.core.local.stream_follower import StreamFollower
from warrenmq.core.message.model import Numbered, Properties, ReadMessages, Table
from warrenmq.core.queue.stream import StreamQueue
from warrenmq.core.replay.matcher import Matcher
from warrenmq.core.route.binding import Binding


@pytest.fixture
def broker() -> Broker:
    return make_broker()


@pytest.fixture
def queue(broker: Broker) -> StreamQueue:
    arguments: Table = {"x-queue-type": "stream"}
    found = broker.vhosts["/"].declare_queue("s", durable=True, arguments=arguments)
    assert isinstance(found, StreamQueue)
    Client(broker).call("Queue.Bind", queue="s", exchange="amq.topic", routing_key="#")
    return found


def publish(broker: Broker, *keys: str) -> None:
    """Messages whose bodies are their keys."""
    publisher = LocalPublisher(broker, broker.vhosts["/"], None)
    for key in keys:
        publisher.publish("amq.topic", key, Properties(delivery_mode=2), key.encode())
    take_turns(broker)


class Reader:
    """Keeps what it gets, and fails at a message `bad`."""

    def __init__(self, broker: Broker, queue: StreamQueue, *keys: str, start: int = 0) -> None:
        self.bodies: list[bytes] = []
        self.offsets: list[int] = []
        self.gaps: list[tuple[int, int]] = []
        self.ended: list[Exception | None] = []
        self.pauses = False
        topic = broker.vhosts["/"].exchanges["amq.topic"]
        matchers = [Matcher(topic, Binding(queue, key, {})) for key in keys]
        self.follower = StreamFollower(
            broker, queue, start, matchers, self.take, lambda *gap: self.gaps.append(gap), self.end
        )

    def take(self, offsets: Sequence[int], read: ReadMessages) -> None:
        self.offsets += offsets
        self.bodies += [message.body for _, message in read()]
        if self.pauses:
            self.follower.pause()
        if b"bad" in self.bodies:
            raise ValueError("bad")

    def end(self, error: Exception | None) -> None:
        self.ended.append(error)


def test_follower_reads_after_resume(broker: Broker, queue: StreamQueue) -> None:
    publish(broker, "a", "b", "c")
    reader = Reader(broker, queue, start=1)
    take_turns(broker)
    assert reader.bodies == []
    reader.follower.resume()
    take_turns(broker)
    publish(broker, "d")
    assert (reader.bodies, reader.offsets) == ([b"b", b"c", b"d"], [1, 2, 3])


def test_pause_in_a_callback_takes_effect_at_once(broker: Broker, queue: StreamQueue) -> None:
    publish(broker, *"abcdefg" * 30)
    reader = Reader(broker, queue)
    reader.pauses = True
    for seen in (100, 200, 210):
        reader.follower.resume()
        take_turns(broker)
        assert reader.offsets == list(range(seen))
    publish(broker, "h")
    assert len(reader.offsets) == 210


def test_error_ends_the_follower_once(
    broker: Broker, queue: StreamQueue, caplog: pytest.LogCaptureFixture
) -> None:
    readers = [Reader(broker, queue), Reader(broker, queue, "*.none")]
    for reader in readers:
        reader.follower.resume()
    publish(broker, "a", "bad", "b")
    publish(broker, "c")
    assert readers[0].bodies == [b"a", b"bad", b"b"]
    assert [list(map(str, reader.ended)) for reader in readers] == [["bad"], []]
    assert "ValueError: bad" in caplog.text


def test_only_matching_messages_are_decoded(
    broker: Broker, queue: StreamQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[int] = []
    plain = MessageReader.read_positions

    def read_positions(self: MessageReader, messages: object, at: Sequence[int]) -> list[Numbered]:
        decoded.extend(at)
        return plain(self, messages, at)  # type: ignore[arg-type]

    monkeypatch.setattr(MessageReader, "read_positions", read_positions)
    publish(broker, "eu.a", "us.b", "eu.c")
    reader = Reader(broker, queue, "eu.*")
    reader.follower.resume()
    take_turns(broker)
    assert (reader.bodies, reader.offsets) == ([b"eu.a", b"eu.c"], [0, 2])
    assert len(decoded) == 2


def test_the_stream_is_deleted(broker: Broker, queue: StreamQueue) -> None:
    reader = Reader(broker, queue)
    broker.vhosts["/"].delete_queue("s")
    take_turns(broker)
    assert reader.ended == [None]


def test_readers_share_entries_read_from_disk(life: Life) -> None:
    life.declare("s", arguments={"x-queue-type": "stream"})
    for _ in range(20):
        life.publish(b"x" * 100_000, "s")
    life.restart()
    queue = life.queue("s")
    assert isinstance(queue, StreamQueue)
    readers = [Reader(life.broker, queue) for _ in range(5)]
    for reader in readers:
        reader.pauses = True
        reader.follower.resume()
        life.turns()
    assert [len(reader.bodies) for reader in readers] == [3] * 5
    assert 500_000 < life.broker.memory.resident_bytes < 1_500_000
    for reader in readers:
        reader.follower.end()
    life.turns()
    assert life.broker.memory.resident_bytes < 5_000
