"""Opening connections with pika: what the broker says of itself, logins, limits, heartbeats."""

from __future__ import annotations

import pika
import pytest
from pika.exceptions import (
    AMQPConnectionError,
    ProbableAccessDeniedError,
    ProbableAuthenticationError,
)

from .conftest import Connect
from .support import Broker, connection_closed, fresh, pump, queue_exists

HEARTBEAT_S = 1


def test_pika_finds_the_abilities_it_looks_for(connection: pika.BlockingConnection) -> None:
    assert connection.publisher_confirms_supported
    assert connection.basic_nack_supported
    assert connection.consumer_cancel_notify_supported
    assert connection.exchange_exchange_bindings_supported


@pytest.mark.parametrize(("user", "password"), [("guest", "wrong"), ("nobody", "guest")])
def test_wrong_login_is_refused_with_a_reason(broker: Broker, user: str, password: str) -> None:
    parameters = broker.pika_parameters(credentials=pika.PlainCredentials(user, password))
    with pytest.raises(ProbableAuthenticationError) as caught:
        pika.BlockingConnection(parameters)
    assert (
        "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. "
        "For details see the broker logfile."
    ) in str(caught.value)


def test_absent_virtual_host_is_refused(connect: Connect) -> None:
    with pytest.raises(ProbableAccessDeniedError) as caught:
        connect(virtual_host="nowhere")
    assert "(530) 'NOT_ALLOWED - vhost nowhere not found'" in str(caught.value)


def test_one_channel_more_than_agreed_closes_the_connection(connect: Connect) -> None:
    bystander = connect().channel()
    connection = connect(channel_max=10)
    for number in range(1, 11):
        connection.channel(number)
    text = "number of channels opened (10) has reached the negotiated channel_max (10)"
    with connection_closed(530, f"NOT_ALLOWED - {text}"):
        connection.channel(11)
    assert bystander.queue_declare("", exclusive=True).method.message_count == 0


def test_a_closed_channel_number_can_be_used_again(connect: Connect) -> None:
    connection = connect(channel_max=1)
    for _ in range(20):
        connection.channel(1).close()
    assert connection.channel(1).is_open


def test_heartbeats_keep_a_quiet_connection(connect: Connect) -> None:
    """The observer measures the time: its queue lives three heartbeats of the quiet one."""
    quiet, observer = connect(heartbeat=HEARTBEAT_S), connect()
    clock = fresh("clock")
    observed = observer.channel()
    observed.confirm_delivery()
    observed.queue_declare(clock, arguments={"x-expires": 3 * HEARTBEAT_S * 1000})
    channel = quiet.channel()

    def clock_gone() -> bool:
        quiet.process_data_events(time_limit=0.05)
        return not queue_exists(observed, clock)

    pump(observer, clock_gone, "the end of the clock queue")
    assert channel.queue_declare("", exclusive=True).method.consumer_count == 0


def test_a_silent_client_is_dropped_and_its_exclusive_queue_with_it(
    broker: Broker, connect: Connect
) -> None:
    observer = connect().channel()
    observer.confirm_delivery()
    silent = pika.BlockingConnection(broker.pika_parameters(heartbeat=HEARTBEAT_S))
    name = fresh("silent")
    silent.channel().queue_declare(name, exclusive=True)
    assert queue_exists(observer, name)

    pump(
        observer.connection,
        lambda: not queue_exists(observer, name),
        "the end of the silent client",
    )
    with pytest.raises(AMQPConnectionError):
        silent.channel()
