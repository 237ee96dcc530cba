"""py-amqp behind the interface of base.py."""

from __future__ import annotations

from typing import Any

import amqp

from ..support import WAIT_S, Broker
from .base import PROPERTIES, STEP_S, Library, LibraryChannel, Received, Refused, arguments_table


class PyAmqpChannel(LibraryChannel):
    """py-amqp answers a refusal on another channel object: errors are raised where it waits."""

    def __init__(self, connection: amqp.Connection) -> None:
        super().__init__()
        self._connection = connection
        self._channel = connection.channel()
        self._confirms = False
        self._unconfirmed = 0
        self._nacked = False
        events = self._channel.events
        events["basic_return"].add(lambda error, *_: self.returned.append(error.reply_code))
        events["basic_ack"].add(lambda tag, multiple: self._settled())
        events["basic_nack"].add(lambda tag, multiple: self._settled(nacked=True))

    def _settled(self, *, nacked: bool = False) -> None:
        self._unconfirmed = 0
        self._nacked = self._nacked or nacked

    def declare(self, name: str = "", *, durable: bool = False, **arguments: Any) -> str:
        try:
            declared = self._channel.queue_declare(
                name, durable=durable, exclusive=not durable, auto_delete=False,
                arguments=arguments_table(arguments),
            )  # fmt: skip
        except amqp.AMQPError as error:
            raise Refused(error.reply_code, error.reply_text) from error
        return str(declared.queue)

    def count(self, queue: str) -> int:
        return int(self._channel.queue_declare(queue, passive=True).message_count)

    def delete(self, queue: str) -> None:
        self._channel.queue_delete(queue)

    def confirm(self) -> None:
        self._channel.confirm_select()
        self._confirms = True

    def publish(
        self, body: bytes, queue: str, *, exchange: str = "", mandatory: bool = False, **fields: Any
    ) -> bool:
        for name, theirs in (("headers", "application_headers"), ("message_type", "type")):
            if name in fields:
                fields[theirs] = fields.pop(name)
        self._unconfirmed, self._nacked = int(self._confirms), False
        message = amqp.Message(body, **fields)
        self._channel.basic_publish(message, exchange, queue, mandatory=mandatory)
        self.wait(lambda: not self._unconfirmed)
        return not self._nacked

    def get(self, queue: str) -> Received | None:
        message = self._channel.basic_get(queue, no_ack=True)
        return None if message is None else self._received(message)

    def prefetch(self, count: int) -> None:
        self._channel.basic_qos(0, count, False)

    def consume(
        self, queue: str, *, no_ack: bool = True, tag: str = "", **arguments: Any
    ) -> list[Received]:
        received: list[Received] = []
        self._channel.basic_consume(
            queue, tag, no_ack=no_ack, arguments=arguments_table(arguments),
            callback=lambda message: received.append(self._received(message)),
            on_cancel=self.cancelled.append,
        )  # fmt: skip
        return received

    def cancel(self, tag: str) -> None:
        self._channel.basic_cancel(tag)

    def ack(self, tag: int, *, multiple: bool = False) -> None:
        self._channel.basic_ack(tag, multiple)

    def reject(self, tag: int, *, requeue: bool) -> None:
        self._channel.basic_reject(tag, requeue)

    def tx(self, step: str) -> None:
        getattr(self._channel, f"tx_{step}")()

    def work(self) -> None:
        try:
            self._connection.drain_events(timeout=STEP_S)
        except TimeoutError:
            return

    def _received(self, message: Any) -> Received:
        found = {name: message.properties.get(name) for name in PROPERTIES}
        found["headers"] = message.headers
        found["message_type"] = message.properties.get("type")
        body = message.body.encode() if isinstance(message.body, str) else message.body
        info = message.delivery_info
        return Received(bytes(body), info["delivery_tag"], info["redelivered"], found)


class PyAmqp(Library):
    def __init__(self, broker: Broker) -> None:
        self._connection = amqp.Connection(
            f"{broker.host}:{broker.port}", userid="guest", password="guest",
            login_method="PLAIN", connect_timeout=WAIT_S,
        )  # fmt: skip
        self._connection.connect()

    def channel(self) -> LibraryChannel:
        return PyAmqpChannel(self._connection)

    def close(self) -> None:
        self._connection.close()
