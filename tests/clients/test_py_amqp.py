"""py-amqp, the client under kombu and Celery: handshake details, heartbeats, confirms."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import amqp
import pytest

from .support import WAIT_S, Broker

Connect = Callable[..., amqp.Connection]

CAPABILITIES = {
    "publisher_confirms", "exchange_exchange_bindings", "basic.nack", "consumer_cancel_notify",
    "connection.blocked", "consumer_priorities", "authentication_failure_close", "per_consumer_qos",
    "direct_reply_to",
}  # fmt: skip


@pytest.fixture
def open_connection(broker: Broker) -> Iterator[Connect]:
    """Opens connections of py-amqp; keyword arguments are those of `amqp.Connection`."""
    opened: list[amqp.Connection] = []

    def open_one(**parameters: Any) -> amqp.Connection:
        connection = amqp.Connection(
            f"{broker.host}:{broker.port}",
            connect_timeout=WAIT_S,
            **{"userid": "guest", "password": "guest", "login_method": "PLAIN", **parameters},
        )
        connection.connect()
        opened.append(connection)
        return connection

    yield open_one
    for connection in opened:
        if connection.connected:
            connection.close()


@pytest.fixture
def channel(open_connection: Connect) -> amqp.Channel:
    return open_connection().channel()


def drain(connection: amqp.Connection, done: Callable[[], bool], what: str) -> None:
    """Reads from the broker until `done()`; raises `TimeoutError` naming `what`."""
    deadline = time.monotonic() + WAIT_S
    while not done():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} did not happen within {WAIT_S} s")
        try:
            connection.drain_events(timeout=0.05)
        except TimeoutError:
            continue


def test_the_broker_introduces_itself(open_connection: Connect) -> None:
    connection = open_connection()
    properties = connection.server_properties
    assert (connection.version_major, connection.version_minor) == (0, 9)
    assert {b"PLAIN", b"AMQPLAIN"} <= set(connection.mechanisms)
    assert connection.locales == ["en_US"]
    assert {name for name, able in properties["capabilities"].items() if able} >= CAPABILITIES
    for name in ("product", "version", "platform", "cluster_name"):
        assert isinstance(properties[name], str) and properties[name], name


@pytest.mark.parametrize("mechanism", ["PLAIN", "AMQPLAIN"])
def test_both_mechanisms_let_in_and_keep_out(open_connection: Connect, mechanism: str) -> None:
    assert open_connection(login_method=mechanism).connected
    with pytest.raises(amqp.exceptions.AccessRefused) as caught:
        open_connection(login_method=mechanism, password="wrong")
    assert caught.value.reply_text == (
        f"ACCESS_REFUSED - Login was refused using authentication mechanism {mechanism}. "
        "For details see the broker logfile."
    )


def test_the_broker_sends_heartbeats(open_connection: Connect) -> None:
    connection = open_connection(heartbeat=1)
    received = connection.bytes_recv
    drain(connection, lambda: connection.bytes_recv >= received + 2, "two heartbeats")
    connection.heartbeat_tick()
    assert connection.channel().queue_declare(exclusive=True).message_count == 0
