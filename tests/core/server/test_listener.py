"""The listener with real sockets on loopback, and the turns that it drives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.conformance import frames
from tests.support.amqp import make_broker, method, publish
from tests.support.manual_store import ManualStore
from warrenmq.core.broker import Broker
from warrenmq.core.clock import SystemClock
from warrenmq.core.server import listener as listener_module
from warrenmq.core.server import login_queue as waiting_room
from warrenmq.core.server import watchdog as watch
from warrenmq.core.server.listener import Listener

from .support import Remote, listening_socket, log_in, until


class Server:
    """A listener in this loop, in real time, with the clients of one test."""

    def __init__(self, store: ManualStore | None = None) -> None:
        self.broker: Broker = make_broker(store)
        self.broker.clock = SystemClock()
        self.listener = Listener(self.broker)
        self.port = 0
        self.remotes: list[Remote] = []

    async def start(self) -> None:
        listening = listening_socket()
        self.port = listening.getsockname()[1]
        await self.listener.start([listening])

    async def enter(self, **given: Any) -> Remote:
        remote = await Remote.enter(self.port, **given)
        self.remotes.append(remote)
        return remote

    async def knock(self) -> Remote:
        remote = await Remote.knock(self.port)
        self.remotes.append(remote)
        return remote

    async def stop(self) -> None:
        for remote in self.remotes:
            await remote.close()
        await self.listener.stop()


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Server]:
    # The watch would give every deadline a second chance.
    monkeypatch.setattr(watch, "_PERIOD_S", 3600)
    server = Server()
    await server.start()
    yield server
    await server.stop()


async def test_clients_meet(server: Server) -> None:
    publisher, consumer = await server.enter(), await server.enter()
    consumer.send(
        method(1, "Queue.Declare", queue="q") + method(1, "Basic.Consume", queue="q", no_ack=True)
    )
    await consumer.next("Basic.ConsumeOk")
    publisher.send(publish(1, b"hello", routing_key="q"))
    assert (await consumer.reply()).body == b"hello"


async def test_large_messages(server: Server) -> None:
    body = bytes(range(256)) * 4_000
    remote = await server.enter()
    remote.send(method(1, "Queue.Declare", queue="q") + publish(1, body, routing_key="q"))
    remote.send(method(1, "Basic.Get", queue="q"))
    assert (await remote.next("Basic.GetOk")).body == body


async def test_more_work_than_a_turn_takes(server: Server) -> None:
    remote = await server.enter()
    remote.send(method(1, "Queue.Declare", queue="q"))
    remote.send(publish(1, b"x", routing_key="q") * 30_000)
    remote.send(method(1, "Basic.Consume", queue="q", no_ack=True, consumer_tag="c"))
    await remote.next("Basic.ConsumeOk")
    await until(lambda: server.broker.counters.delivered == 30_000)


async def test_wrong_password(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    remote = await server.knock()
    remote.send(
        frames.PROTOCOL_HEADER
        + method(
            0, "Connection.StartOk", mechanism="PLAIN", response="\0guest\0wrong",
            client_properties={"capabilities": {"authentication_failure_close": True}},
        )
    )  # fmt: skip
    assert (await remote.next("Connection.Close"))["reply_code"] == 403
    assert "login refused for user 'guest'" in caplog.text


async def test_logins_at_the_same_time_are_checked_once(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks: list[str] = []
    check = server.broker.users.check

    def counted(name: str, password: str, *, loopback: bool) -> object:
        checks.append(name)
        return check(name, password, loopback=loopback)

    monkeypatch.setattr(server.broker.users, "check", counted)
    await asyncio.gather(*(server.enter() for _ in range(8)))
    assert checks == ["guest"]


async def test_a_check_that_fails_leaves_nobody_waiting(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """No memory for argon2, for example: the connection would wait for good."""

    def failing(name: str, password: str, *, loopback: bool) -> object:
        raise MemoryError

    monkeypatch.setattr(server.broker.users, "check", failing)
    remote = await server.knock()
    known: dict[str, Any] = {"capabilities": {"authentication_failure_close": True}}
    remote.send(frames.PROTOCOL_HEADER + log_in(**known))
    assert (await remote.next("Connection.Close"))["reply_code"] == 403
    assert "a password could not be checked" in caplog.text
    assert "login refused for user 'guest': internal error" in caplog.text


async def test_more_logins_than_may_wait(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(waiting_room, "MAX_BYTES", 0)
    remote = await server.knock()
    known: dict[str, Any] = {"capabilities": {"authentication_failure_close": True}}
    remote.send(frames.PROTOCOL_HEADER + log_in(**known))
    assert (await remote.next("Connection.Close"))["reply_code"] == 403
    assert "too many logins wait for their passwords to be checked" in caplog.text


async def test_another_protocol(server: Server) -> None:
    remote = await server.knock()
    remote.send(b"GET / HTTP/1.1\r\n\r\n")
    async with asyncio.timeout(10):
        assert await remote.reader.read() == frames.PROTOCOL_HEADER


async def test_a_deadline_needs_no_traffic(server: Server) -> None:
    remote = await server.enter()
    remote.send(
        method(1, "Queue.Declare", queue="dead")
        + method(
            1, "Queue.Declare", queue="q",
            arguments={"x-message-ttl": 20, "x-dead-letter-exchange": "",
                       "x-dead-letter-routing-key": "dead"},
        )
        + method(1, "Basic.Consume", queue="dead", consumer_tag="c")
        + publish(1, b"late", routing_key="q")
    )  # fmt: skip
    assert (await remote.next("Basic.Deliver")).body == b"late"


async def test_an_earlier_deadline_comes_first(server: Server) -> None:
    remote = await server.enter()
    for queue, expires_ms in (("far", 1_000_000), ("near", 20)):
        remote.send(method(1, "Queue.Declare", queue=queue, arguments={"x-expires": expires_ms}))
        await remote.next("Queue.DeclareOk")
    await until(lambda: list(server.broker.vhosts["/"].queues) == ["far"])


async def test_work_from_elsewhere_gets_a_turn(server: Server) -> None:
    """A commit comes on its own; so does what HTTP puts into queues."""
    store = ManualStore()
    store.paging = False
    late = Server(store)
    await late.start()
    try:
        remote = await late.enter()
        remote.send(
            method(1, "Queue.Declare", queue="q", durable=True)
            + method(1, "Confirm.Select")
            + publish(1, b"x", {"delivery_mode": 2}, routing_key="q")
        )
        await remote.next("Confirm.SelectOk")
        await until(lambda: late.broker.counters.published == 1)
        store.commit()
        assert (await remote.reply()).name == "Basic.Ack"
    finally:
        await late.stop()


async def test_an_error_in_a_turn_is_logged_and_the_next_goes_on(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    remote = await server.enter()
    turn = server.broker.turn
    failed: list[bool] = []

    def fail_once() -> bool:
        if not failed:
            failed.append(True)
            raise ZeroDivisionError
        return turn()

    monkeypatch.setattr(server.broker, "turn", fail_once)
    remote.send(method(1, "Basic.Qos"))
    assert (await remote.reply()).name == "Basic.QosOk"
    assert "ZeroDivisionError" in caplog.text


async def test_one_that_never_reads_costs_the_others_nothing(server: Server) -> None:
    lazy, publisher, other = await server.enter(), await server.enter(), await server.enter()
    lazy.send(
        method(1, "Queue.Declare", queue="lazy")
        + method(1, "Basic.Consume", queue="lazy", no_ack=True)
    )
    await lazy.next("Basic.ConsumeOk")
    for _ in range(200):
        publisher.send(publish(1, bytes(100_000), routing_key="lazy"))
    other.send(method(1, "Queue.Declare", queue="q") + method(1, "Basic.Consume", queue="q"))
    publisher.send(publish(1, b"hello", routing_key="q"))
    assert (await other.next("Basic.Deliver")).body == b"hello"
    assert server.broker.vhosts["/"].queues["lazy"].ready_count > 0
    lazy.writer.transport.abort()


# -- the end


async def test_stopping_tells_everybody_and_waits_for_their_answer(server: Server) -> None:
    remote = await server.enter()
    stopping = asyncio.create_task(server.listener.stop())
    close = await remote.next("Connection.Close")
    assert (close["reply_code"], close["reply_text"]) == (
        320, "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'",
    )  # fmt: skip
    assert not stopping.done()
    remote.send(method(0, "Connection.CloseOk"))
    await stopping
    assert await remote.ended()
    with pytest.raises(ConnectionRefusedError):
        await Remote.knock(server.port)


async def test_stopping_does_not_wait_for_ever(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener_module, "DRAIN_S", 0.01)
    remote = await server.enter()
    await server.listener.stop()
    assert server.listener.peers == set() or all(
        peer.connection.is_closed for peer in server.listener.peers
    )
    assert await remote.ended()


async def test_stopping_ends_those_who_never_said_a_word(server: Server) -> None:
    remote = await server.knock()
    await until(lambda: len(server.listener.peers) == 1)
    await server.listener.stop()
    assert await remote.ended()
