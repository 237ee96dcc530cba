"""pika behind the interface of base.py."""

from __future__ import annotations

from typing import Any

import pika
from pika.exceptions import ChannelClosedByBroker, NackError, UnroutableError

from ..support import Broker
from .base import PROPERTIES, STEP_S, Library, LibraryChannel, Received, Refused, arguments_table


class PikaChannel(LibraryChannel):
    def __init__(self, connection: pika.BlockingConnection) -> None:
        super().__init__()
        self._connection = connection
        self._channel = connection.channel()
        self._channel.add_on_return_callback(
            lambda _, method, properties, body: self.returned.append(method.reply_code)
        )
        self._channel.add_on_cancel_callback(
            lambda frame: self.cancelled.append(frame.method.consumer_tag)
        )

    def declare(self, name: str = "", *, durable: bool = False, **arguments: Any) -> str:
        try:
            declared = self._channel.queue_declare(
                name, durable=durable, exclusive=not durable, arguments=arguments_table(arguments)
            )
        except ChannelClosedByBroker as error:
            raise Refused(error.reply_code, error.reply_text) from error
        return str(declared.method.queue)

    def count(self, queue: str) -> int:
        return int(self._channel.queue_declare(queue, passive=True).method.message_count)

    def delete(self, queue: str) -> None:
        self._channel.queue_delete(queue)

    def confirm(self) -> None:
        self._channel.confirm_delivery()

    def publish(
        self, body: bytes, queue: str, *, exchange: str = "", mandatory: bool = False, **fields: Any
    ) -> bool:
        if "message_type" in fields:
            fields["type"] = fields.pop("message_type")
        properties = pika.BasicProperties(**fields)
        try:
            self._channel.basic_publish(exchange, queue, body, properties, mandatory)
        except NackError:
            return False
        except UnroutableError as error:
            self.returned += [one.method.reply_code for one in error.messages]
        return True

    def get(self, queue: str) -> Received | None:
        method, properties, body = self._channel.basic_get(queue, auto_ack=True)
        return None if method is None else self._received(method, properties, body)

    def prefetch(self, count: int) -> None:
        self._channel.basic_qos(prefetch_count=count)

    def consume(
        self, queue: str, *, no_ack: bool = True, tag: str = "", **arguments: Any
    ) -> list[Received]:
        received: list[Received] = []
        self._channel.basic_consume(
            queue,
            lambda _, method, properties, body: received.append(
                self._received(method, properties, body)
            ),
            auto_ack=no_ack,
            consumer_tag=tag or None,
            arguments=arguments_table(arguments),
        )
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
        self._connection.process_data_events(time_limit=STEP_S)

    def _received(self, method: Any, properties: Any, body: bytes) -> Received:
        found = {name: getattr(properties, name, None) for name in PROPERTIES}
        found["message_type"] = properties.type
        return Received(body, method.delivery_tag, method.redelivered, found)


class Pika(Library):
    writes_floats = False

    def __init__(self, broker: Broker) -> None:
        self._connection = pika.BlockingConnection(broker.pika_parameters())

    def channel(self) -> LibraryChannel:
        return PikaChannel(self._connection)

    def close(self) -> None:
        self._connection.close()
