"""amqp.md section 6: direct reply-to."""

from __future__ import annotations

from .raw import Channel, Client

REPLY_TO = "amq.rabbitmq.reply-to"


def test_direct_reply_to(channel: Channel, other: Channel, name: str) -> None:
    other.declare(name)
    tag = channel.consume(REPLY_TO, no_ack=True)
    channel.publish(b"question", {"reply_to": REPLY_TO, "correlation_id": "1"}, routing_key=name)
    other.consume(name, no_ack=True)
    reply_to = other.content().properties.reply_to
    assert reply_to is not None
    assert reply_to.startswith(f"{REPLY_TO}.")
    other.publish(b"answer", {"correlation_id": "1"}, routing_key=reply_to, mandatory=True)
    answer = channel.content()
    assert (answer.body, answer.properties.correlation_id) == (b"answer", "1")
    assert (answer.method.consumer_tag, answer.method.routing_key) == (tag, reply_to)


def _reply_name(channel: Channel, other: Channel, name: str) -> str:
    channel.consume(REPLY_TO, no_ack=True, consumer_tag="replies")
    other.declare(name)
    channel.publish(b"question", {"reply_to": REPLY_TO}, routing_key=name)
    other.consume(name, no_ack=True, consumer_tag="questions")
    return str(other.content().properties.reply_to)


def test_reply_queue_exists_as_long_as_its_consumer(
    client: Client, channel: Channel, other: Channel, name: str
) -> None:
    reply_to = _reply_name(channel, other, name)
    reply = other.declare(reply_to)
    assert (reply.message_count, reply.consumer_count) == (0, 1)
    channel.close()
    other.send("Queue.Declare", queue=reply_to, passive=True)
    other.refused(404)


def test_reply_to_a_closed_channel_is_unroutable(
    channel: Channel, other: Channel, name: str
) -> None:
    reply_to = _reply_name(channel, other, name)
    channel.close()
    other.publish(b"late", routing_key=reply_to, mandatory=True)
    assert other.content("Basic.Return").method.reply_code == 312


def test_reply_consumer_cannot_acknowledge(channel: Channel) -> None:
    channel.send("Basic.Consume", queue=REPLY_TO)
    channel.refused(406, "PRECONDITION_FAILED - reply consumer cannot acknowledge")


def test_one_reply_consumer_a_channel(channel: Channel) -> None:
    channel.consume(REPLY_TO, no_ack=True)
    channel.send("Basic.Consume", queue=REPLY_TO, no_ack=True)
    channel.refused(406, "PRECONDITION_FAILED - reply consumer already set")


def test_reply_to_without_a_consumer(channel: Channel, name: str) -> None:
    channel.declare(name)
    channel.publish(b"question", {"reply_to": REPLY_TO}, routing_key=name)
    channel.refused(
        406, "PRECONDITION_FAILED - fast reply consumer does not exist", culprit="Basic.Publish"
    )
