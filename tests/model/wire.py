"""Operations as the bytes that a client sends."""

from __future__ import annotations

from tests.support.amqp import method, publish

from .operations import Call, Publish, Publishes


def operation_bytes(operation: Call | Publishes) -> bytes:
    channel = operation.seat[1]
    if isinstance(operation, Call):
        return method(channel, operation.method, **operation.fields)
    return b"".join(publish_bytes(channel, message) for message in operation.messages)


def publish_bytes(channel: int, message: Publish) -> bytes:
    return publish(
        channel, message.body, message.properties, exchange=message.exchange,
        routing_key=message.key, mandatory=message.mandatory, immediate=message.immediate,
    )  # fmt: skip
