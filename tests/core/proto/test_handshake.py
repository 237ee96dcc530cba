"""From the first octet to open-ok, one read at a time (AMQP 0-9-1 1.4, 2.2.4)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance import frames
from tests.support.amqp import MemoryTransport, Reply, make_broker, method, names, read, take_turns
from warrenmq.core.broker import Broker, Limits
from warrenmq.core.errors import ConnectionFault
from warrenmq.core.proto.connection import Connection, State
from warrenmq.core.proto.handshake import (
    CAPABILITIES,
    KEPT_MAX_BYTES,
    LOGIN_DELAY_S,
    read_credentials,
)

REFUSAL_WANTED = {"capabilities": {"authentication_failure_close": True}}


class Knock:
    """A client at the door."""

    def __init__(
        self,
        broker: Broker | None = None,
        *,
        peer_is_loopback: bool = True,
        certified: str | None = None,
    ) -> None:
        self.broker = broker or make_broker()
        self.transport = MemoryTransport()
        self.connection = Connection(
            self.broker,
            self.transport,
            address="192.0.2.7",
            peer_is_loopback=peer_is_loopback,
            certified=certified,
        )

    def say(self, data: bytes) -> list[Reply]:
        self.broker.tick()
        self.connection.receive(data)
        return self.hear()

    def hear(self) -> list[Reply]:
        take_turns(self.broker)
        return read(self.transport.taken())

    def start(self) -> Reply:
        (start,) = self.say(frames.PROTOCOL_HEADER)
        return start

    def log_in(self, name: str = "guest", **client_properties: Any) -> list[Reply]:
        """Gives what comes when the login is answered: by the user, or None for an unknown."""
        self.start()
        assert self.say(start_ok(f"\0{name}\0pass", client_properties=client_properties)) == []
        ((_, password, answer),) = self.transport.logins
        assert password == "pass"
        answer(self.broker.users.get(name))
        return self.hear()

    def tune(self, **fields: Any) -> list[Reply]:
        self.log_in()
        return self.say(method(0, "Connection.TuneOk", **fields))

    def close(self, replies: list[Reply]) -> tuple[int, str]:
        """Reply code and text of the only answer, a close."""
        (close,) = replies
        assert close.name == "Connection.Close"
        assert self.connection.state is State.CLOSING
        return close["reply_code"], close["reply_text"]


def start_ok(response: str | bytes, mechanism: str = "PLAIN", **fields: Any) -> bytes:
    return method(0, "Connection.StartOk", mechanism=mechanism, response=response, **fields)


def open_vhost(name: str = "/") -> bytes:
    return method(0, "Connection.Open", virtual_host=name)


# -- header


@pytest.mark.parametrize("header", [b"AMQP\x00\x00\x09\x01", b"AMQP\x01\x01\x00\x09"])
def test_header_is_answered_with_start(header: bytes) -> None:
    (start,) = Knock().say(header)
    assert start.name == "Connection.Start"
    assert (start["version_major"], start["version_minor"]) == (0, 9)
    assert start["mechanisms"].split() == ["PLAIN", "AMQPLAIN"]
    assert start["locales"] == "en_US"


def test_start_says_what_the_server_can() -> None:
    properties: dict[str, Any] = Knock().start()["server_properties"]
    assert properties["capabilities"] == dict.fromkeys(CAPABILITIES, True)
    # kombu asks for a qos per channel only from a product of this name.
    assert properties["product"] == "RabbitMQ"


def test_header_octet_by_octet() -> None:
    knock = Knock()
    for octet in frames.PROTOCOL_HEADER[:-1]:
        assert knock.say(bytes((octet,))) == []
    assert names(knock.say(frames.PROTOCOL_HEADER[-1:])) == ["Connection.Start"]


@pytest.mark.parametrize(
    "header", [b"AMQP\x00\x01\x00\x00", b"GET / HTTP/1.1\r\n", b"AMQQ", b"\x16\x03\x01", b"amqp"]
)
def test_other_protocols_get_our_header_and_the_end(header: bytes) -> None:
    knock = Knock()
    knock.connection.receive(header)
    take_turns(knock.broker)
    assert knock.transport.taken() == frames.PROTOCOL_HEADER
    assert knock.transport.closed


# -- login


def test_login_waits_for_the_password_check() -> None:
    knock = Knock()
    (tune,) = knock.log_in()
    assert tune.name == "Connection.Tune"
    assert (tune["channel_max"], tune["frame_max"], tune["heartbeat"]) == (2047, 131_072, 60)
    assert knock.connection.user.name == "guest"


def test_verified_moments_ago_needs_no_check() -> None:
    knock = Knock()
    knock.broker.users.check("guest", "guest", loopback=True)
    knock.start()
    assert names(knock.say(start_ok("\0guest\0guest"))) == ["Connection.Tune"]
    assert knock.transport.logins == []


def test_verified_moments_ago_is_checked_while_guesses_are_counted() -> None:
    """Or whoever guesses could go on guessing what was right a moment ago."""
    knock = Knock()
    users = knock.broker.users
    users.check("guest", "guest", loopback=True)
    for _ in range(5):
        users.throttle.failed("guest", "192.0.2.7")
    knock.start()
    assert knock.say(start_ok("\0guest\0guest")) == []
    assert len(knock.transport.logins) == 1


def test_amqplain() -> None:
    knock = Knock()
    knock.start()
    table = frames.table({"LOGIN": "guest", "PASSWORD": "word"})[4:]
    knock.say(start_ok(table, "AMQPLAIN"))
    assert [login[:2] for login in knock.transport.logins] == [("guest", "word")]


def test_what_is_sent_during_the_check_is_taken_after_it() -> None:
    knock = Knock()
    knock.start()
    sent = start_ok("\0guest\0x") + method(0, "Connection.TuneOk") + open_vhost()
    assert knock.say(sent) == []
    knock.transport.logins[0][2](knock.broker.users.get("guest"))
    assert names(knock.hear()) == ["Connection.Tune", "Connection.OpenOk"]


def test_much_of_it_is_not_kept_for_somebody_unknown() -> None:
    knock = Knock()
    knock.start()
    login, room = start_ok("\0guest\0x"), KEPT_MAX_BYTES
    assert knock.say(login + bytes(room)) == []
    code, text = knock.close(knock.say(bytes(1)))
    assert (code, text) == (
        501, f"FRAME_ERROR - {room + 1} bytes before the login was answered, at most {room}"
    )  # fmt: skip
    assert knock.connection.buffered_bytes < room


def test_refused_with_a_close_for_clients_that_can_read_it() -> None:
    knock = Knock()
    code, text = knock.close(knock.log_in("nobody", **REFUSAL_WANTED))
    assert code == 403
    assert text == (
        "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. "
        "For details see the broker logfile."
    )


def test_refused_in_silence_for_others() -> None:
    knock = Knock()
    assert knock.log_in("nobody") == []
    assert knock.transport.drops_after_s == [LOGIN_DELAY_S]
    assert knock.say(method(0, "Connection.TuneOk")) == []


def test_an_answer_after_the_end_is_ignored() -> None:
    knock = Knock()
    knock.start()
    knock.say(start_ok("\0guest\0x"))
    knock.connection.lost()
    knock.transport.logins[0][2](knock.broker.users.get("guest"))
    assert knock.hear() == []


@pytest.mark.parametrize(
    "response", ["guest", "\0guest", "\0a\0b\0c", b"\0\xff\0x", "guest\0guest\0x"]
)
def test_plain_of_another_form(response: str | bytes) -> None:
    knock = Knock()
    knock.start()
    assert knock.close(knock.say(start_ok(response)))[0] == 502


@pytest.mark.parametrize(
    "table", [{"LOGIN": "a"}, {"LOGIN": "a", "PASSWORD": 5}, {}], ids=["half", "number", "empty"]
)
def test_amqplain_of_another_form(table: dict[str, Any]) -> None:
    with pytest.raises(ConnectionFault) as caught:
        read_credentials("AMQPLAIN", frames.table(table)[4:])
    assert caught.value.code == 502


def test_unknown_mechanism() -> None:
    knock = Knock()
    knock.start()
    code, text = knock.close(knock.say(start_ok("", "EXTERNAL")))
    assert code == 503
    assert "EXTERNAL" in text


# -- certificates


def test_external_is_for_those_with_a_certificate() -> None:
    assert Knock(certified="guest").start()["mechanisms"].split() == [
        "PLAIN", "AMQPLAIN", "EXTERNAL",
    ]  # fmt: skip
    knock = Knock()
    assert "EXTERNAL" not in knock.start()["mechanisms"]
    assert knock.close(knock.say(start_ok("", "EXTERNAL")))[0] == 503


@pytest.mark.parametrize("response", ["", "another", "\0another\0x"])
def test_external_takes_the_name_of_the_certificate(response: str) -> None:
    knock = Knock(certified="guest")
    knock.start()
    assert names(knock.say(start_ok(response, "EXTERNAL"))) == ["Connection.Tune"]
    assert knock.transport.logins == []
    assert knock.connection.user is knock.broker.users.get("guest")


@pytest.mark.parametrize(("certified", "near"), [("nobody", True), ("", True), ("guest", False)])
def test_external_refused(certified: str, near: bool, caplog: pytest.LogCaptureFixture) -> None:
    knock = Knock(certified=certified, peer_is_loopback=near)
    knock.start()
    sent = start_ok("", "EXTERNAL", client_properties=REFUSAL_WANTED)
    assert knock.close(knock.say(sent)) == (
        403,
        "ACCESS_REFUSED - Login was refused using authentication mechanism EXTERNAL. "
        "For details see the broker logfile.",
    )
    assert f"certificate of {certified!r} refused" in caplog.text


def test_external_refused_in_silence() -> None:
    knock = Knock(certified="nobody")
    knock.start()
    assert knock.say(start_ok("", "EXTERNAL")) == []
    assert knock.transport.drops_after_s == [LOGIN_DELAY_S]


def test_a_certificate_does_not_hinder_a_password() -> None:
    knock = Knock(certified="nobody")
    assert names(knock.log_in()) == ["Connection.Tune"]


# -- tune


@pytest.mark.parametrize("value", [0, 2047])
def test_zero_takes_what_is_offered(value: int) -> None:
    knock = Knock()
    assert knock.tune(channel_max=value, heartbeat=7) == []
    assert knock.connection.channel_max == 2047
    assert knock.connection.frame_max == 131_072
    assert knock.connection.heartbeat_s == 7


def test_less_than_offered_is_taken() -> None:
    knock = Knock()
    knock.tune(channel_max=3, frame_max=4096)
    assert (knock.connection.channel_max, knock.connection.frame_max) == (3, 4096)
    assert knock.connection.heartbeat_s == 0


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
def test_outside_of_the_offer(fields: dict[str, Any], text: str) -> None:
    knock = Knock()
    assert knock.close(knock.tune(**fields)) == (530, f"NOT_ALLOWED - {text}")


def test_the_offer_is_the_brokers() -> None:
    limits = Limits(frame_max=8192, channel_max=5, heartbeat_s=9)
    (tune,) = Knock(make_broker(limits=limits)).log_in()
    assert (tune["channel_max"], tune["frame_max"], tune["heartbeat"]) == (5, 8192, 9)


# -- open


@pytest.mark.parametrize("vhost", ["/", ""])
def test_open(vhost: str) -> None:
    knock = Knock()
    knock.tune()
    assert names(knock.say(open_vhost(vhost))) == ["Connection.OpenOk"]
    assert knock.connection.state is State.OPEN
    assert knock.connection.handshake is None
    assert knock.connection.vhost.name == "/"


def test_unknown_vhost() -> None:
    knock = Knock()
    knock.tune()
    assert knock.close(knock.say(open_vhost("v"))) == (530, "NOT_ALLOWED - vhost v not found")


def test_vhost_of_others() -> None:
    knock = Knock()
    knock.broker.add_vhost("v")
    knock.tune()
    assert knock.close(knock.say(open_vhost("v"))) == (
        530, "NOT_ALLOWED - access to vhost 'v' refused for user 'guest'",
    )  # fmt: skip


# -- order


@pytest.mark.parametrize(
    "early", [open_vhost(), method(0, "Connection.TuneOk"), method(0, "Connection.OpenOk")]
)
def test_out_of_order(early: bytes) -> None:
    knock = Knock()
    knock.start()
    assert knock.close(knock.say(early))[0] == 504


def test_channels_have_to_wait() -> None:
    knock = Knock()
    knock.start()
    assert knock.close(knock.say(method(1, "Channel.Open")))[0] == 504


def test_content_has_to_wait() -> None:
    knock = Knock()
    knock.tune()
    header = frames.frame(frames.HEADER, 1, frames.content_header(0))
    assert knock.close(knock.say(header))[0] == 505


def test_client_may_leave_early() -> None:
    knock = Knock()
    knock.start()
    assert names(knock.say(method(0, "Connection.Close"))) == ["Connection.CloseOk"]
    assert knock.transport.closed
    assert knock.broker.connections == {}


def test_frames_are_small_before_tune() -> None:
    knock = Knock()
    knock.start()
    assert knock.close(knock.say(start_ok("x" * 8192)))[0] == 501
