"""amqp.md section 2: from the protocol header to connection.close-ok."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from . import frames
from .raw import Channel, Client, Disconnected

Connect = Callable[..., Client]
Dial = Callable[[], Client]

silent = pytest.mark.differs("drops a connection that is not open yet without a close")

CAPABILITIES = {
    "publisher_confirms", "exchange_exchange_bindings", "basic.nack", "consumer_cancel_notify",
    "connection.blocked", "consumer_priorities", "authentication_failure_close",
    "per_consumer_qos", "direct_reply_to",
}  # fmt: skip
REFUSED_LOGIN = (
    "ACCESS_REFUSED - Login was refused using authentication mechanism {}. "
    "For details see the broker logfile."
)


@pytest.fixture
def started(dial: Dial) -> Client:
    """A client that has got connection.start."""
    client = dial()
    client.start()
    return client


# Header


@pytest.mark.parametrize("header", [b"AMQP\x00\x00\x09\x01", b"AMQP\x01\x01\x00\x09"])
def test_header_is_accepted(dial: Dial, header: bytes) -> None:
    start = dial().start(header)
    assert (start.version_major, start.version_minor) == (0, 9)


@pytest.mark.parametrize(
    "header",
    [
        b"AMQP\x00\x00\x09\x02",
        b"AMQP\x00\x01\x00\x00",
        b"AMQP\x03\x01\x00\x00",
        b"amqp\x00\x00\x09\x01",
        b"AMQP\x01\x00\x00\x00",
        b"\x00" * 8,
        b"MQTT\x00\x04\x02\x00",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
)
def test_other_header_is_answered_with_the_right_one(dial: Dial, header: bytes) -> None:
    client = dial()
    client.send(header)
    assert client.read_bytes(8) == frames.PROTOCOL_HEADER
    with pytest.raises(Disconnected):
        client.read_bytes(1)


# Start


def test_start_offers_mechanisms_and_locale(dial: Dial) -> None:
    start = dial().start()
    assert {"PLAIN", "AMQPLAIN"} <= set(start.mechanisms.split())
    assert start.locales.split() == ["en_US"]


def test_server_properties(dial: Dial) -> None:
    """kombu raises a prefetch under a running consumer for `RabbitMQ` from 3.3 on only."""
    properties = dial().start().server_properties
    for key in ("platform", "cluster_name"):
        assert properties[key], key
    assert properties["product"] == "RabbitMQ"
    assert [int(part) for part in properties["version"].split(".")] >= [3, 3]
    capabilities = properties["capabilities"]
    assert all(capabilities[name] is True for name in CAPABILITIES)


# Login


def _amqplain(user: str, password: object) -> bytes:
    """The body of a table without its length."""
    return frames.table({"LOGIN": user, "PASSWORD": password})[4:]


@pytest.mark.parametrize(
    ("mechanism", "response"),
    [("PLAIN", b"\0guest\0guest"), ("AMQPLAIN", _amqplain("guest", "guest"))],
)
def test_login(started: Client, mechanism: str, response: bytes) -> None:
    started.log_in(mechanism=mechanism, response=response)
    started.tune()
    started.open()


@pytest.mark.parametrize(
    ("mechanism", "response"),
    [
        ("PLAIN", b"\0guest\0wrong"),
        ("PLAIN", b"\0nobody\0guest"),
        ("AMQPLAIN", _amqplain("guest", "wrong")),
    ],
)
def test_login_refused(started: Client, mechanism: str, response: bytes) -> None:
    started.log_in(mechanism=mechanism, response=response)
    started.closed(403, REFUSED_LOGIN.format(mechanism))


def test_login_refused_for_a_client_that_knows_no_refusal(started: Client) -> None:
    started.log_in(password="wrong", capabilities={})
    with pytest.raises(Disconnected):
        started.read_bytes(1)


@silent
def test_unknown_mechanism(started: Client) -> None:
    started.log_in(mechanism="CRAM-MD5")
    started.closed(503, culprit="Connection.StartOk")


@silent
@pytest.mark.parametrize(
    ("mechanism", "response"),
    [
        *(
            ("PLAIN", one)
            for one in (
                b"guest",
                b"",
                b"\0guest",
                b"\0a\0b\0c",
                b"\0\xff\0x",
                b"guest\0guest\0x",
            )
        ),
        *(
            ("AMQPLAIN", one)
            for one in (
                b"\x05LOG",
                b"",
                frames.table({"LOGIN": "a"})[4:],
                _amqplain("a", 5),
            )
        ),
    ],
)
def test_undecodable_response(started: Client, mechanism: str, response: bytes) -> None:
    started.log_in(mechanism=mechanism, response=response)
    started.closed(502)


# Tune


def test_offer(started: Client) -> None:
    started.log_in()
    offer = started.tune()
    assert (offer.channel_max, offer.frame_max, offer.heartbeat) == (2047, 131_072, 60)


@silent
@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"channel_max": 2048},
         "negotiated channel_max = 2048 is higher than the maximum allowed value (2047)"),
        ({"frame_max": 131_073},
         "negotiated frame_max = 131073 is higher than the maximum allowed value (131072)"),
        ({"frame_max": 4095},
         "negotiated frame_max = 4095 is lower than the minimum allowed value (4096)"),
    ],
)  # fmt: skip
def test_tune_beyond_the_offer(started: Client, fields: dict[str, int], text: str) -> None:
    started.log_in()
    started.tune(**fields)
    started.closed(530, f"NOT_ALLOWED - {text}", culprit="Connection.TuneOk")


@pytest.mark.parametrize(
    "fields",
    [
        {"frame_max": 4096},
        pytest.param({"frame_max": 0}, marks=pytest.mark.differs("refuses no limit")),
        pytest.param({"channel_max": 0}, marks=pytest.mark.differs("refuses no limit")),
        {"channel_max": 1},
        {"heartbeat": 580},
        {"heartbeat": 0},
    ],
)
def test_tune_within_the_offer(connect: Connect, fields: dict[str, int]) -> None:
    channel = connect(**fields).channel()
    assert channel.get(channel.declare().queue) is None


# Heartbeat


def test_heartbeats_are_sent(connect: Connect) -> None:
    client = connect(heartbeat=1)
    assert client.read_frame() == (frames.HEARTBEAT, 0, b"")


def test_silence_ends_the_connection(connect: Connect) -> None:
    connect(heartbeat=1).ended()


def test_any_traffic_counts_as_a_heartbeat(connect: Connect) -> None:
    beat = frames.heartbeat()
    qos = frames.frame(frames.METHOD, 1, frames.method("Basic.Qos"))
    signs = [(beat, beat), (qos, qos), (beat[:4], beat[4:])]
    clients = [connect(heartbeat=2) for _ in signs]
    for client in clients:
        client.channel()
    for turn in range(6):
        for client, sign in zip(clients, signs, strict=True):
            while client.read_frame()[0] != frames.HEARTBEAT:
                pass
            client.send(sign[turn % 2])
    for client in clients:
        client.close()


# Open


@pytest.mark.parametrize(
    "vhost", ["/", pytest.param("", marks=pytest.mark.differs("has no vhost without a name"))]
)
def test_open(started: Client, vhost: str) -> None:
    started.log_in()
    started.tune()
    started.open(vhost)


def test_vhost_not_found(started: Client) -> None:
    started.log_in()
    started.tune()
    started.send_method("Connection.Open", virtual_host="nowhere")
    started.closed(530, "NOT_ALLOWED - vhost nowhere not found", culprit="Connection.Open")


HANDSHAKE: list[tuple[str, list[str], Any]] = [
    ("tune-ok for start-ok", [], frames.method("Connection.TuneOk")),
    ("open for start-ok", [], frames.method("Connection.Open", virtual_host="/")),
    ("open for tune-ok", ["log_in"], frames.method("Connection.Open", virtual_host="/")),
    ("start-ok twice", ["log_in"], frames.method("Connection.StartOk")),
]


@silent
@pytest.mark.parametrize(
    ("steps", "payload"), [case[1:] for case in HANDSHAKE], ids=[case[0] for case in HANDSHAKE]
)
def test_handshake_out_of_order(started: Client, steps: list[str], payload: bytes) -> None:
    for step in steps:
        getattr(started, step)()
        started.expect("Connection.Tune")
    started.send(frames.frame(frames.METHOD, 0, payload))
    started.closed(504)


def test_handshake_sent_at_once(dial: Dial) -> None:
    client = dial()
    client.send(
        frames.PROTOCOL_HEADER
        + b"".join(
            frames.frame(frames.METHOD, channel, payload)
            for channel, payload in [
                (0, frames.method("Connection.StartOk", mechanism="PLAIN",
                                  response="\0guest\0guest", locale="en_US")),
                (0, frames.method("Connection.TuneOk", channel_max=9, frame_max=131_072)),
                (0, frames.method("Connection.Open", virtual_host="/")),
                (1, frames.method("Channel.Open")),
            ]
        )
    )  # fmt: skip
    for reply in ("Start", "Tune", "OpenOk"):
        client.expect(f"Connection.{reply}")
    client.expect("Channel.OpenOk", 1)


def test_handshake_byte_by_byte(dial: Dial) -> None:
    class OneByOne(Client):
        def send(self, data: bytes) -> None:
            for at in range(len(data)):
                super().send(data[at : at + 1])

    with OneByOne(dial().port) as client:
        client.start()
        client.log_in()
        client.tune()
        client.open()
        channel = client.channel()
        queue = channel.declare().queue
        channel.put(queue, b"slow")
        assert channel.taken(queue).body == b"slow"


# Close


def test_close_requeues_and_deletes_before_close_ok(
    client: Client, other: Channel, name: str
) -> None:
    channel = client.channel()
    channel.declare(f"{name}.mine", exclusive=True)
    channel.declare(name)
    channel.put(name, b"a", b"b")
    channel.consume(name)
    assert channel.bodies(2) == [b"a", b"b"]
    client.close()
    assert [other.taken(name).body for _ in range(2)] == [b"a", b"b"]
    other.send("Queue.Declare", queue=f"{name}.mine", passive=True)
    other.refused(404)


@pytest.mark.parametrize("secret", ["guest", "wrong"])
def test_update_secret(client: Client, secret: str) -> None:
    client.send_method("Connection.UpdateSecret", new_secret=secret, reason="rotation")
    client.expect("Connection.UpdateSecretOk")
    client.channel()
