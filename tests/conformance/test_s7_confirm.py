"""amqp.md section 7: publisher confirms."""

from __future__ import annotations

from typing import Any

import pytest

from . import frames
from .raw import Channel, Client

pytestmark = pytest.mark.promise


@pytest.fixture
def confirming(client: Client) -> Channel:
    channel = client.channel()
    channel.call("Confirm.Select")
    return channel


class Outcomes:
    """What became of publishes 1 to `count`: True for an ack, False for a nack, each once."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.known: dict[int, bool] = {}

    def wait(self, count: int) -> list[bool]:
        while len(self.known) < count:
            self.take(self.channel.client.receive(self.channel.number), count)
        return [self.known[number] for number in range(1, count + 1)]

    def take(self, method: Any, count: int) -> None:
        assert isinstance(
            method, frames.method_type("Basic.Ack") | frames.method_type("Basic.Nack")
        ), method
        last = method.delivery_tag
        assert last <= count
        assert last not in self.known, f"{last} was confirmed twice"
        for number in range(1 if method.multiple else last, last + 1):
            self.known.setdefault(number, method.name == "Basic.Ack")


def outcomes(channel: Channel, count: int) -> list[bool]:
    return Outcomes(channel).wait(count)


@pytest.mark.parametrize("nowait", [False, True])
def test_numbers_start_with_select(channel: Channel, name: str, nowait: bool) -> None:
    """Without confirm mode nothing is confirmed; a second select changes nothing."""
    channel.declare(name)
    channel.put(name, b"before", b"before")
    if nowait:
        channel.send("Confirm.Select", nowait=True)
    else:
        channel.call("Confirm.Select")
    channel.publish(b"a", routing_key=name)
    assert channel.expect("Basic.Ack").delivery_tag == 1
    channel.call("Confirm.Select")
    channel.publish(b"b", routing_key=name)
    assert channel.expect("Basic.Ack").delivery_tag == 2
    channel.close()
    channel.open()
    channel.publish(b"unconfirmed", routing_key=name)
    channel.call("Confirm.Select")
    channel.publish(b"c", routing_key=name)
    assert channel.expect("Basic.Ack").delivery_tag == 1


@pytest.mark.parametrize("delivery_mode", [1, 2])
@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("size", [0, 16, 200_000])
def test_each_publish_once(
    confirming: Channel, name: str, delivery_mode: int, durable: bool, size: int
) -> None:
    confirming.declare(name, durable=durable)
    for _ in range(30):
        confirming.publish(b"x" * size, {"delivery_mode": delivery_mode}, routing_key=name)
    assert outcomes(confirming, 30) == [True] * 30
    assert confirming.call("Queue.Delete", queue=name).message_count == 30


def test_mixed_publishes_in_one_go(confirming: Channel, other: Channel, name: str) -> None:
    """Persistent and transient, routed and not, small and large, all in one write."""
    other.declare(name, durable=True)
    cases = [
        (name, 2, b"x"), (name, 1, b"x"), (f"{name}.no", 2, b"x"), (name, 2, b"x" * 100_000),
        (f"{name}.no", 1, b""), (name, 1, b""), (name, 2, b"y" * 300_000),
    ] * 10  # fmt: skip
    confirming.client.send(
        b"".join(
            frames.publish_frames(1, body, {"delivery_mode": mode}, routing_key=key)
            for key, mode, body in cases
        )
    )
    assert outcomes(confirming, len(cases)) == [True] * len(cases)
    assert other.drain(name) == [body for key, _, body in cases if key == name]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"mandatory": True}, 312),
        pytest.param(
            {"immediate": True}, 313, marks=pytest.mark.differs("refuses immediate with 540")
        ),
    ],
)
def test_returned_then_acked(
    confirming: Channel, name: str, fields: dict[str, Any], code: int
) -> None:
    confirming.publish(b"a", routing_key=name, **fields)
    assert confirming.content("Basic.Return").method.reply_code == code
    assert confirming.expect("Basic.Ack").delivery_tag == 1


def test_return_precedes_its_ack(confirming: Channel, name: str) -> None:
    """Among publishes that are routed, in one write."""
    confirming.declare(name)
    keys = [name, f"{name}.no", name, name, f"{name}.no"]
    confirming.client.send(
        b"".join(
            frames.publish_frames(1, b"%d" % number, routing_key=key, mandatory=True)
            for number, key in enumerate(keys, 1)
        )
    )
    seen, returned = Outcomes(confirming), []
    while len(seen.known) < len(keys):
        method = confirming.client.receive(1)
        if isinstance(method, frames.method_type("Basic.Return")):
            confirming.client.receive(1)
            returned.append(int(confirming.client.receive(1)))
            assert returned[-1] not in seen.known
        else:
            seen.take(method, len(keys))
    assert returned == [2, 5]
    assert all(seen.known.values())


def test_overflow_of_one_queue_keeps_the_others(confirming: Channel, name: str) -> None:
    confirming.call("Exchange.Declare", exchange=name, exchange_type="fanout")
    full = {"x-max-length": 0, "x-overflow": "reject-publish"}
    confirming.declare(f"{name}.full", arguments=full)
    confirming.declare(f"{name}.open")
    for queue in (f"{name}.full", f"{name}.open"):
        confirming.call("Queue.Bind", queue=queue, exchange=name)
    confirming.publish(b"a", exchange=name)
    assert outcomes(confirming, 1) == [False]
    assert confirming.drain(f"{name}.open") == [b"a"]


@pytest.mark.parametrize("overflow", ["reject-publish", "reject-publish-dlx"])
def test_publishes_to_a_full_queue_are_nacked(
    confirming: Channel, name: str, overflow: str
) -> None:
    """Keys alternate between a queue that is full after one message and an open one."""
    full = f"{name}.full"
    confirming.declare(full, arguments={"x-max-length": 1, "x-overflow": overflow})
    confirming.declare(name)
    keys = [name, full, name, full, name, full, full, name]
    confirming.client.send(
        b"".join(frames.publish_frames(1, b"%d" % at, routing_key=key)
                 for at, key in enumerate(keys))
    )  # fmt: skip
    assert outcomes(confirming, len(keys)) == [
        key == name or at == 1 for at, key in enumerate(keys)
    ]
    assert confirming.drain(full) == [b"1"]


@pytest.mark.parametrize("fate", ["max-length", "ttl", "purge", "delete", "consume"])
def test_message_that_leaves_at_once_is_acked(
    confirming: Channel, other: Channel, name: str, fate: str
) -> None:
    arguments = {"max-length": {"x-max-length": 0}, "ttl": {"x-message-ttl": 0}}.get(fate, {})
    other.declare(name, durable=True, arguments=arguments)
    if fate == "consume":
        other.consume(name, no_ack=True)
    publish = frames.publish_frames(1, b"a", {"delivery_mode": 2}, routing_key=name)
    rest = {
        "purge": frames.method("Queue.Purge", queue=name, nowait=True),
        "delete": frames.method("Queue.Delete", queue=name, nowait=True),
    }.get(fate)
    confirming.client.send(publish + (frames.frame(1, 1, rest) if rest else b""))
    assert outcomes(confirming, 1) == [True]
