"""The connection handshake (AMQP 0-9-1 1.4, 2.2.4)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance import frames
from tests.support.amqp import MemoryTransport, Reply, make_broker, method, names, read, take_turns
from warrenmq.core.broker import Broker
from warrenmq.core.context import BrokerLimits
from warrenmq.core.proto.connection import Connection
from warrenmq.core.proto.connection_state import ConnectionState
from warrenmq.core.proto.handshake import BUFFERED_MAX_BYTES, LOGIN_DELAY_S


class Login:
    """A client that has connected and sent nothing yet."""

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

    def send(self, data: bytes) -> list[Reply]:
        self.broker.tick()
        self.connection.receive(data)
        return self.receive()

    def receive(self) -> list[Reply]:
        take_turns(self.broker)
        return read(self.transport.taken())

    def start(self, response: str = "", mechanism: str = "PLAIN", **fields: Any) -> list[Reply]:
        self.send(frames.PROTOCOL_HEADER)
        return self.send(start_ok(response, mechanism, **fields)) if response else []

    def decide(self, name: str) -> list[Reply]:
        """Ends the password check: the user, or None for an unknown name."""
        ((_, _, answer),) = self.transport.logins
        answer(self.broker.users.get(name))
        return self.receive()

    def closed(self, replies: list[Reply]) -> tuple[int, str]:
        (close,) = replies
        assert close.name == "Connection.Close"
        assert self.connection.state is ConnectionState.CLOSING
        return close["reply_code"], close["reply_text"]


@pytest.fixture
def login() -> Login:
    return Login()


def start_ok(response: str, mechanism: str = "PLAIN", **fields: Any) -> bytes:
    return method(0, "Connection.StartOk", mechanism=mechanism, response=response, **fields)


@pytest.mark.parametrize("failures", [0, 5])
def test_a_password_checked_moments_ago_is_known_unless_guesses_are_counted(
    login: Login, failures: int
) -> None:
    users = login.broker.users
    users.passwords.check("guest", "guest", loopback=True)
    for _ in range(failures):
        users.throttle.failed("guest", "192.0.2.7")
    replies = login.start("\0guest\0guest")
    assert names(replies) == ([] if failures else ["Connection.Tune"])
    assert len(login.transport.logins) == bool(failures)


def test_input_during_the_password_check_is_handled_after_it(login: Login) -> None:
    login.start()
    opened = method(0, "Connection.Open", virtual_host="/")
    tune_ok = method(0, "Connection.TuneOk")
    assert login.send(start_ok("\0guest\0x") + tune_ok + opened) == []
    assert names(login.decide("guest")) == ["Connection.Tune", "Connection.OpenOk"]


def test_input_during_the_password_check_is_bounded(login: Login) -> None:
    login.start()
    limit = BUFFERED_MAX_BYTES
    assert login.send(start_ok("\0guest\0x") + bytes(limit)) == []
    assert login.closed(login.send(bytes(1))) == (
        501, f"FRAME_ERROR - {limit + 1} bytes received before authentication, limit {limit}"
    )  # fmt: skip
    assert login.connection.buffered_bytes < limit


@pytest.mark.parametrize("certified", [None, "nobody"])
def test_a_client_without_the_capability_is_disconnected_after_a_delay(
    certified: str | None,
) -> None:
    login = Login(certified=certified)
    mechanism = "PLAIN" if certified is None else "EXTERNAL"
    assert login.start("\0nobody\0x", mechanism) == []
    if certified is None:
        assert login.decide("nobody") == []
    assert login.transport.drops_after_s == [LOGIN_DELAY_S]
    assert login.send(method(0, "Connection.TuneOk")) == []


def test_a_password_check_that_ends_after_the_connection_is_ignored(login: Login) -> None:
    login.start("\0guest\0x")
    login.connection.lost()
    assert login.decide("guest") == []


@pytest.mark.parametrize(("certified", "near"), [("", True), ("guest", False)])
def test_external_login_without_a_name_or_of_a_remote_guest_is_refused(
    certified: str, near: bool, caplog: pytest.LogCaptureFixture
) -> None:
    login = Login(certified=certified, peer_is_loopback=near)
    capable = {"capabilities": {"authentication_failure_close": True}}
    code, _ = login.closed(login.start("x", "EXTERNAL", client_properties=capable))
    assert code == 403
    assert f"certificate of {certified!r} refused" in caplog.text


def test_the_offer_has_the_limits_of_the_broker() -> None:
    login = Login(make_broker(limits=BrokerLimits(frame_max=8192, channel_max=5, heartbeat_s=9)))
    login.start("\0guest\0x")
    (tune,) = login.decide("guest")
    assert (tune["channel_max"], tune["frame_max"], tune["heartbeat"]) == (5, 8192, 9)


@pytest.mark.parametrize(
    ("early", "code"),
    [
        (method(1, "Channel.Open"), 504),
        (frames.frame(frames.HEADER, 1, frames.content_header(0)), 505),
    ],
)
def test_frames_of_channels_before_open(login: Login, early: bytes, code: int) -> None:
    login.start()
    assert login.closed(login.send(early))[0] == code


def test_close_during_the_handshake(login: Login) -> None:
    login.start()
    assert names(login.send(method(0, "Connection.Close"))) == ["Connection.CloseOk"]
    assert login.transport.closed
    assert login.broker.connections == {}
