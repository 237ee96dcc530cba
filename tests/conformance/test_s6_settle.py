"""amqp.md section 6: ack, nack, reject, recover."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .raw import Channel, Client, Content

pytestmark = pytest.mark.promise

Connect = Callable[..., Client]


def test_ack_multiple(channel: Channel, other: Channel, name: str) -> None:
    channel.filled(name, 5)
    channel.consume(name)
    channel.bodies(5)
    channel.send("Basic.Ack", delivery_tag=3, multiple=True)
    channel.close()
    assert other.drain(name) == [b"3", b"4"]


@pytest.mark.parametrize("method", ["Basic.Ack", "Basic.Nack"])
def test_tag_zero_is_all(channel: Channel, other: Channel, name: str, method: str) -> None:
    channel.send(method, delivery_tag=0, multiple=True)
    channel.filled(name, 5)
    channel.consume(name)
    channel.bodies(5)
    channel.send(method, delivery_tag=0, multiple=True)
    channel.send(method, delivery_tag=0, multiple=True)
    channel.close()
    assert other.drain(name) == []


@pytest.mark.parametrize("method", ["Basic.Ack", "Basic.Nack", "Basic.Reject"])
@pytest.mark.parametrize("tag", [0, 1, 3, 4, 1 << 40])
def test_unknown_tag(channel: Channel, name: str, method: str, tag: int) -> None:
    channel.filled(name, 3)
    channel.consume(name)
    channel.bodies(3)
    channel.send(method, delivery_tag=1)
    if tag == 3:
        channel.send(method, delivery_tag=3)
    channel.send(method, delivery_tag=tag)
    channel.refused(406, f"PRECONDITION_FAILED - unknown delivery tag {tag}", culprit=method)


def test_acks_in_any_order(channel: Channel, other: Channel, name: str) -> None:
    channel.filled(name, 50)
    channel.consume(name)
    channel.bodies(50)
    kept = {7, 8, 30, 49}
    acked = set(range(1, 51)) - {number + 1 for number in kept}
    for tag in sorted(acked, key=lambda tag: tag * 37 % 53):
        channel.send("Basic.Ack", delivery_tag=tag)
    channel.close()
    assert other.drain(name) == [b"%d" % number for number in sorted(kept)]


def test_no_ack_needs_no_ack(channel: Channel, name: str) -> None:
    channel.filled(name, 1)
    channel.consume(name, no_ack=True)
    channel.bodies(1)
    channel.send("Basic.Ack", delivery_tag=1)
    channel.refused(406, "PRECONDITION_FAILED - unknown delivery tag 1")


# Requeue


@pytest.mark.parametrize("how", ["reject", "nack", "nack multiple", "recover", "channel", "cancel"])
def test_requeue_keeps_the_order(connect: Connect, channel: Channel, name: str, how: str) -> None:
    bodies = channel.filled(name, 6)
    taker = connect().channel()
    for _ in range(5):
        taker.taken(name, no_ack=False)
    match how:
        case "reject" | "nack":
            for tag in (2, 5, 1, 4, 3):
                taker.send(f"Basic.{how.title()}", delivery_tag=tag, requeue=True)
            taker.call("Basic.Qos")
        case "nack multiple":
            taker.send("Basic.Nack", delivery_tag=5, multiple=True, requeue=True)
            taker.call("Basic.Qos")
        case "recover":
            taker.call("Basic.Recover", requeue=True)
        case "channel":
            taker.close()
        case _:
            taker.client.close()
    messages = [channel.taken(name) for _ in bodies]
    assert [message.body for message in messages] == bodies
    assert [message.method.redelivered for message in messages] == [True] * 5 + [False]


# Recover


def test_recover_delivers_again(channel: Channel, name: str) -> None:
    bodies = channel.filled(name, 3)
    channel.consume(name)
    channel.bodies(3)
    channel.send("Basic.Ack", delivery_tag=2)
    channel.call("Basic.Recover", requeue=True)
    messages = [channel.content() for _ in range(2)]
    assert [message.body for message in messages] == [bodies[0], bodies[2]]
    assert all(message.method.redelivered for message in messages)


def test_recover_async_has_no_answer(channel: Channel, name: str) -> None:
    bodies = channel.filled(name, 2)
    channel.consume(name)
    channel.bodies(2)
    channel.send("Basic.RecoverAsync", requeue=True)
    assert channel.bodies(2) == bodies


@pytest.mark.differs("refuses requeue=false with 540")
def test_recover_to_the_same_consumer(channel: Channel, other: Channel, name: str) -> None:
    bodies = channel.filled(name, 2)
    tag = channel.consume(name)
    channel.bodies(2)
    other.consume(name)
    channel.send("Basic.Recover", requeue=False)
    messages = _recovered(channel, 2)
    assert [message.body for message in messages] == bodies
    assert {message.method.consumer_tag for message in messages} == {tag}
    assert all(message.method.redelivered for message in messages)


def _recovered(channel: Channel, count: int) -> list[Content]:
    """Deliveries and a recover-ok, which may come before, after or between them."""
    messages: list[Content] = []
    recovered = False
    while len(messages) < count or not recovered:
        method = channel.client.receive(channel.number)
        if method.name == "Basic.RecoverOk":
            recovered = True
        else:
            messages.append(channel.rest_of(method))
    return messages
