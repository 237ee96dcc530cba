"""Pika's callback-driven connection: pipelined publishes and exact orders of events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pika
import pytest
from pika.spec import Basic

from .support import WAIT_S, Broker, fresh


class Session:
    """Runs `scenario(session)` once the connection is open, until it calls `finish`.

    `events` is the scenario's own record. A scenario that never finishes raises `TimeoutError`;
    a connection that the broker closes ends the session and leaves the reason in `closed`.
    """

    def __init__(self, broker: Broker, scenario: Callable[[Session], None], **options: Any) -> None:
        self.events: list[Any] = []
        self.closed: BaseException | None = None
        self._late = False
        self.connection = pika.SelectConnection(
            broker.pika_parameters(**options),
            on_open_callback=lambda _: scenario(self),
            on_open_error_callback=self._on_closed,
            on_close_callback=self._on_closed,
        )
        self.connection.ioloop.call_later(WAIT_S, self._on_late)
        try:
            self.connection.ioloop.start()
        finally:
            self.connection.ioloop.close()
        if self._late:
            raise TimeoutError(f"not finished within {WAIT_S} s; so far: {self.events[-20:]}")

    def finish(self) -> None:
        self.connection.close()

    def _on_closed(self, _: pika.SelectConnection, reason: BaseException) -> None:
        self.closed = reason
        self.connection.ioloop.stop()

    def _on_late(self) -> None:
        self._late = True
        self.connection.ioloop.stop()


def reply(session: Session) -> tuple[int, str]:
    """Code and text with which the connection was closed."""
    assert isinstance(session.closed, pika.exceptions.ConnectionClosed), session.closed
    return session.closed.reply_code, session.closed.reply_text


def test_every_pipelined_publish_is_confirmed_exactly_once(broker: Broker) -> None:
    count, queue = 1000, fresh("queue")

    def scenario(session: Session) -> None:
        settled: set[int] = set()

        def on_confirm(frame: Any) -> None:
            assert isinstance(frame.method, Basic.Ack)
            last = frame.method.delivery_tag
            low = 1 if frame.method.multiple else last
            fresh_tags = {tag for tag in range(low, last + 1) if tag not in settled}
            assert fresh_tags, "a tag was confirmed twice"
            settled.update(fresh_tags)
            session.events.append(frame.method)
            if len(settled) == count:
                assert settled == set(range(1, count + 1))
                session.finish()

        def on_open(channel: pika.channel.Channel) -> None:
            channel.confirm_delivery(on_confirm)
            channel.queue_declare(queue, exclusive=True)
            for number in range(count):
                channel.basic_publish("", queue, str(number).encode())

        session.connection.channel(on_open_callback=on_open)

    session = Session(broker, scenario)
    assert reply(session) == (200, "Normal shutdown")
    assert 1 <= len(session.events) <= count


def test_a_return_comes_before_its_ack(broker: Broker) -> None:
    queue = fresh("queue")

    def scenario(session: Session) -> None:
        def on_confirm(frame: Any) -> None:
            session.events.append(("ack", frame.method.delivery_tag))
            if frame.method.delivery_tag == 3:
                session.finish()

        def on_return(channel: Any, method: Any, properties: Any, body: bytes) -> None:
            session.events.append(("return", method.reply_code, body))

        def on_open(channel: pika.channel.Channel) -> None:
            channel.add_on_return_callback(on_return)
            channel.confirm_delivery(on_confirm)
            channel.queue_declare(queue, exclusive=True)
            for key in (queue, "no.queue", queue):
                channel.basic_publish("", key, key.encode(), mandatory=True)

        session.connection.channel(on_open_callback=on_open)

    events = Session(broker, scenario).events
    returned = events.index(("return", 312, b"no.queue"))
    covering = min(
        index for index, event in enumerate(events) if event[0] == "ack" and event[1] >= 2
    )
    assert returned < covering
    assert events[-1] == ("ack", 3)
    assert len([event for event in events if event[0] == "return"]) == 1


def test_consume_ok_comes_before_the_first_delivery(broker: Broker) -> None:
    queue = fresh("queue")

    def scenario(session: Session) -> None:
        def on_message(channel: Any, method: Any, properties: Any, body: bytes) -> None:
            session.events.append((method.delivery_tag, body))
            channel.basic_ack(method.delivery_tag)
            if method.delivery_tag == 3:
                session.finish()

        def on_open(channel: pika.channel.Channel) -> None:
            channel.queue_declare(queue, exclusive=True)
            for number in range(3):
                channel.basic_publish("", queue, str(number).encode())
            channel.basic_consume(
                queue, on_message, consumer_tag="mine",
                callback=lambda frame: session.events.append(frame.method.consumer_tag),
            )  # fmt: skip

        session.connection.channel(on_open_callback=on_open)

    assert Session(broker, scenario).events == ["mine", (1, b"0"), (2, b"1"), (3, b"2")]


def test_a_flood_of_channels_ends_at_the_limit(broker: Broker) -> None:
    """Five thousand channel numbers at once, although the agreement says 2,047."""

    def scenario(session: Session) -> None:
        for number in range(1, 5001):
            session.connection.channel(number, lambda channel: session.events.append(int(channel)))

    session = Session(broker, scenario)
    text = "number of channels opened (2047) has reached the negotiated channel_max (2047)"
    assert reply(session) == (530, f"NOT_ALLOWED - {text}")
    assert sorted(set(session.events)) == sorted(session.events)
    assert all(number <= 2047 for number in session.events)


def test_flow_can_be_confirmed_active(broker: Broker) -> None:
    def scenario(session: Session) -> None:
        def on_flow(active: bool) -> None:
            session.events.append(active)
            session.finish()

        session.connection.channel(on_open_callback=lambda channel: channel.flow(True, on_flow))

    assert Session(broker, scenario).events == [True]


@pytest.mark.warren_only("RabbitMQ answers flow(false) with 540")
def test_flow_pauses_and_resumes_deliveries(broker: Broker) -> None:
    queue = fresh("queue")

    def scenario(session: Session) -> None:
        def on_message(channel: Any, method: Any, properties: Any, body: bytes) -> None:
            session.events.append(body)
            session.finish()

        def resume(frame: Any) -> None:
            session.events.append(frame.method.message_count)
            channels[0].flow(True, lambda active: session.events.append(active))

        def on_paused(active: bool) -> None:
            session.events.append(active)
            channels[0].basic_publish("", queue, b"held back")
            channels[0].queue_declare(queue, passive=True, callback=resume)

        def on_open(channel: pika.channel.Channel) -> None:
            channels.append(channel)
            channel.queue_declare(queue, exclusive=True)
            channel.basic_consume(queue, on_message, auto_ack=True)
            channel.flow(False, on_paused)

        channels: list[pika.channel.Channel] = []
        session.connection.channel(on_open_callback=on_open)

    assert Session(broker, scenario).events == [False, 1, True, b"held back"]
