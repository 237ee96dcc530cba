"""The listener with real sockets on loopback, and the turns that it drives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import repeat, takewhile
from typing import Any

import pytest

from tests.conformance import frames
from tests.support.amqp import make_broker, method
from tests.support.steps import count_calls
from warrenmq.core.broker import Broker
from warrenmq.core.clock import SystemClock
from warrenmq.core.server import login_queue as waiting_room
from warrenmq.core.server import watchdog as watch
from warrenmq.core.server.listener import Listener
from warrenmq.core.slices import Slices

from .support import Remote, listening_socket, log_in, until


class Server:
    """A listener in this loop, in real time, with the clients of one test."""

    def __init__(self) -> None:
        self.broker: Broker = make_broker()
        self.broker.clock = SystemClock()
        self.listener = Listener(self.broker)
        self.socket = listening_socket()
        self.port = self.socket.getsockname()[1]
        self.remotes: list[Remote] = []

    async def enter(self, **given: Any) -> Remote:
        remote = await Remote.enter(self.port, **given)
        self.remotes.append(remote)
        return remote

    async def dial(self) -> Remote:
        remote = await Remote.dial(self.port)
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
    await server.listener.start([server.socket])
    yield server
    await server.stop()


async def test_a_failing_password_check_refuses_the_login(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(name: str, password: str, *, loopback: bool) -> object:
        raise MemoryError

    monkeypatch.setattr(server.broker.users.passwords, "check", failing)
    remote = await server.dial()
    known: dict[str, Any] = {"capabilities": {"authentication_failure_close": True}}
    remote.send(frames.PROTOCOL_HEADER + log_in(**known))
    assert (await remote.next("Connection.Close"))["reply_code"] == 403
    assert "a password could not be checked" in caplog.text
    assert "login refused for user 'guest': internal error" in caplog.text


async def test_waiting_logins_are_bounded(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(waiting_room, "MAX_BYTES", 0)
    remote = await server.dial()
    known: dict[str, Any] = {"capabilities": {"authentication_failure_close": True}}
    remote.send(frames.PROTOCOL_HEADER + log_in(**known))
    assert (await remote.next("Connection.Close"))["reply_code"] == 403
    assert "too many logins wait for their passwords to be checked" in caplog.text


async def test_an_earlier_timer_replaces_a_later_one(server: Server) -> None:
    remote = await server.enter()
    for queue, expires_ms in (("far", 1_000_000), ("near", 20)):
        remote.send(method(1, "Queue.Declare", queue=queue, arguments={"x-expires": expires_ms}))
        await remote.next("Queue.DeclareOk")
    await until(lambda: list(server.broker.vhosts["/"].queues) == ["far"])


async def test_sliced_work_has_one_turn_in_each_iteration_of_the_loop(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many timers were due meanwhile, and however many peers are read in it."""
    broker, listener = server.broker, server.listener
    turns = count_calls(monkeypatch, (Slices, "run"))
    due: list[int] = []
    for number in range(20):
        broker.timers.at(broker.now_ms + number, lambda: due.append(1))
    broker.slices.start(takewhile(lambda _: len(due) <= 20, repeat(None)))
    listener.turn()
    await until(lambda: len(due) == 20)
    before = turns["run"]
    for _ in range(10):
        await asyncio.sleep(0)
        listener.turn()
    assert turns["run"] == before + 10
    due.append(1)


async def test_an_error_in_a_turn_does_not_stop_the_next(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    remote = await server.enter()
    turn = server.broker.turn
    failed: list[bool] = []

    def fail_once(**how: bool) -> bool:
        if not failed:
            failed.append(True)
            raise ZeroDivisionError
        return turn(**how)

    monkeypatch.setattr(server.broker, "turn", fail_once)
    remote.send(method(1, "Basic.Qos"))
    assert (await remote.reply()).name == "Basic.QosOk"
    assert "ZeroDivisionError" in caplog.text


# -- the end


async def test_stop_closes_connections_and_waits_for_close_ok(server: Server) -> None:
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
        await Remote.dial(server.port)


async def test_stop_ends_connections_before_their_handshake(server: Server) -> None:
    remote = await server.dial()
    await until(lambda: len(server.listener.peers) == 1)
    await server.listener.stop()
    assert await remote.ended()
