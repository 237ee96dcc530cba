"""The AMQP listener: accepts peers and turns the broker over.

One listener drives the broker's turns for everybody, HTTP included: `turn` after anything that
may have put work into queues, again in the next round of the loop while some is left, and at the
broker's next deadline.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Coroutine, Iterable

from ..auth import User
from ..broker import Broker
from ..errors import ConnectionFault
from ..proto.connection import Connection
from .disk_gate import DiskGate
from .peer import Peer
from .watch import watch_peers

logger = logging.getLogger(__name__)

BACKLOG = 1024
LOGINS_AT_ONCE = max(1, min(4, (os.cpu_count() or 1) - 1))
"""Each checks a password with 19 MiB of memory, and takes a processor; the loop keeps one."""
DRAIN_S = 5.0


class Listener:
    """Serves a broker on sockets."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.peers: set[Peer] = set()
        self.disk_gate = DiskGate(broker)
        self._servers: list[asyncio.Server] = []
        self._turn_due = False
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_ms = 0
        self._paused: list[Peer] = []
        self._resting: list[Peer] = []
        self._logins = asyncio.Semaphore(LOGINS_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, sockets: Iterable[socket.socket]) -> None:
        """Serves peers on sockets that listen already; closes those when it stops."""
        self.broker.on_work = self._turn_soon
        loop = asyncio.get_running_loop()
        for listening in sockets:
            server = await loop.create_server(lambda: Peer(self), sock=listening, backlog=BACKLOG)
            self._servers.append(server)
        self._spawn(watch_peers(self))

    async def stop(self) -> None:
        """Tells every client (320), waits a bounded time for their close-ok, and ends."""
        for server in self._servers:
            server.close()
        self.broker.tick()
        for peer in list(self.peers):
            peer.connection.fail(
                ConnectionFault(320, "broker forced connection closure with reason 'shutdown'")
            )
        self.turn()
        deadline = asyncio.get_running_loop().time() + DRAIN_S
        while self.peers and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.01)
        for peer in list(self.peers):
            peer.abort()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._alarm is not None:
            self._alarm.cancel()

    # -- turns

    def turn(self) -> None:
        """Hands out what waits in queues and writes to every peer that got something.

        An error that nobody foresaw costs the queue at hand its turn, not everybody theirs.
        """
        try:
            more = self.broker.turn()
        except Exception:
            logger.exception("internal error while queues were served")
            more = True
        if more:
            self._turn_soon()
        self._set_alarm()

    def _turn_soon(self) -> None:
        if not self._turn_due:
            self._turn_due = True
            asyncio.get_running_loop().call_soon(self._late_turn)

    def _late_turn(self) -> None:
        self._turn_due = False
        self.broker.tick()
        self.turn()

    def _set_alarm(self) -> None:
        next_ms = self.broker.timers.next_ms
        if next_ms is None:
            return
        if self._alarm is not None:
            if self._alarm_ms <= next_ms:
                return
            self._alarm.cancel()
        self._alarm_ms = next_ms
        after_s = max(0, next_ms - self.broker.clock.now_ms()) / 1000
        self._alarm = asyncio.get_running_loop().call_later(after_s, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self._late_turn()

    def read_on_later(self, peer: Peer, *, turns: int) -> None:
        """The peer is read again after everybody else had one turn, or two."""
        if not self._paused and not self._resting:
            asyncio.get_running_loop().call_soon(self._read_on)
        (self._paused if turns == 1 else self._resting).append(peer)

    def _read_on(self) -> None:
        paused, self._paused, self._resting = self._paused, self._resting, []
        if self._paused:
            asyncio.get_running_loop().call_soon(self._read_on)
        for peer in paused:
            peer.read_on()

    # -- logging in

    def authenticate(
        self,
        connection: Connection,
        name: str,
        password: str,
        answer: Callable[[User | None], None],
    ) -> None:
        self._spawn(self._check(connection, name, password, answer))

    async def _check(
        self,
        connection: Connection,
        name: str,
        password: str,
        answer: Callable[[User | None], None],
    ) -> None:
        users, loopback = self.broker.users, connection.peer_is_loopback
        async with self._logins:
            # A thousand clients that come back at once need one check, not a thousand.
            if connection.is_closed:
                return
            user = users.known(name, password, loopback=loopback)
            if user is None:
                user = await asyncio.to_thread(users.check, name, password, loopback=loopback)
        if user is None:
            logger.warning("connection %s: login refused for user %r", connection.name, name)
        self.broker.tick()
        answer(user)
        self.turn()

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.error("a task of the listener failed", exc_info=task.exception())
