"""The AMQP listener: accepts connections and drives the broker's turns.

One listener drives the turns for all, HTTP included: `turn` after anything that may have put
messages into queues, again in the next iteration of the event loop while work is left, and at the
broker's next timer.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Final

from ..auth import GUEST, User
from ..broker import Broker
from ..errors import ConnectionFault
from ..proto.connection import Connection
from ..wire.proxy import Relayed
from .caller import Network
from .certificate_name import CertificateName, common_name
from .login_queue import TooManyAttempts
from .logins import GUEST_NOT_LOCAL, ClientGone, Logins, TooManyFailures
from .peer import Peer
from .proxy_listener import ProxyListener
from .watchdog import HANDSHAKE_S, watch_peers
from .write_backpressure import WriteBackpressure

logger = logging.getLogger(__name__)

BACKLOG: Final = 1024
DRAIN_S: Final = 5.0


class Listener:
    """Serves a broker on sockets.

    `certificate_name` reads the user name from a client's certificate. Peers whose address is in
    `proxies` have to send a PROXY header. Without `takes_plaintext` passwords are refused on
    connections that could be read in transit.
    """

    def __init__(
        self,
        broker: Broker,
        *,
        certificate_name: CertificateName = common_name,
        proxies: Sequence[Network] = (),
        logins: Logins | None = None,
        takes_plaintext: bool = True,
    ) -> None:
        self.broker = broker
        self.logins = logins or Logins(broker.users)
        self.certificate_name = certificate_name
        self.takes_plaintext = takes_plaintext
        self.find_token_user: Callable[[str], User | None] = lambda secret: None
        """Finds the user of a token, which is given in the place of its owner's password."""
        self._proxies = proxies
        self.peers: set[Peer] = set()
        self.disconnected_peers: set[Peer] = set()
        """Unread peers whose sockets were closed at the last check, at `polled_sockets_ms`."""
        self.polled_sockets_ms = broker.now_ms
        self.write_backpressure = WriteBackpressure(broker)
        self._servers: list[asyncio.Server | ProxyListener] = []
        self._turn_due = False
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_ms = 0
        self._paused: list[Peer] = []
        self._resting: list[Peer] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.stopping = False

    async def start(self, sockets: Iterable[socket.socket]) -> None:
        """Drives turns, and serves clients on listening sockets, which `stop` closes."""
        self.broker.on_work = self._turn_soon
        await self.serve(sockets)
        self._spawn(watch_peers(self))

    async def serve(
        self, sockets: Iterable[socket.socket], tls: ssl.SSLContext | None = None
    ) -> None:
        """Serves clients on further listening sockets."""
        for listening in sockets:
            if self._proxies:
                server = ProxyListener(listening, self._proxies, self._make_peer, tls)
                server.open()
                self._servers.append(server)
            else:
                self._servers.append(await self._plain_server(listening, tls))

    def _make_peer(self, relayed: Relayed | None = None) -> Peer:
        return Peer(self, relayed)

    async def _plain_server(
        self, listening: socket.socket, tls: ssl.SSLContext | None
    ) -> asyncio.Server:
        return await asyncio.get_running_loop().create_server(
            self._make_peer,
            sock=listening,
            backlog=BACKLOG,
            ssl=tls,
            ssl_handshake_timeout=None if tls is None else HANDSHAKE_S,
        )

    async def stop(self) -> None:
        """Closes every connection (320), waits up to `DRAIN_S` for close-ok, then aborts."""
        self.stopping = True
        for server in self._servers:
            server.close()
        self.broker.tick()
        for peer in list(self.peers):
            peer.connection.fail(
                ConnectionFault(320, "broker forced connection closure with reason 'shutdown'")
            )
        self.turn()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + DRAIN_S
        while any(peer.is_awaited for peer in self.peers) and loop.time() < deadline:
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
        """Dispatches ready messages and writes the output of all connections.

        Sliced work waits for the turn that is due already, if there is one: many peers may be read
        in an iteration of the event loop. An unexpected error costs the current queue its turn, and
        no other.
        """
        try:
            more = self.broker.turn(runs_slices=not self._turn_due)
        except Exception:
            logger.exception("internal error while messages were dispatched")
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
        self._alarm = asyncio.get_running_loop().call_later(after_s, self._alarm_due)

    def _alarm_due(self) -> None:
        self._alarm = None
        self._turn_soon()  # the one that is due already, if there is one

    def resume_reading_later(self, peer: Peer, *, turns: int) -> None:
        """Reads the peer again after `turns` (1 or 2) iterations of the event loop."""
        if not self._paused and not self._resting:
            asyncio.get_running_loop().call_soon(self._read_on)
        (self._paused if turns == 1 else self._resting).append(peer)

    def _read_on(self) -> None:
        paused, self._paused, self._resting = self._paused, self._resting, []
        if self._paused:
            asyncio.get_running_loop().call_soon(self._read_on)
        for peer in paused:
            peer.resume_reading()

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
        try:
            user, reason = await self._login(connection, name, password)
        except ClientGone:
            return
        except Exception:
            # Without a result the connection would wait forever.
            logger.exception("connection %s: a password could not be checked", connection.name)
            user, reason = None, ": internal error"
        if user is None:
            # The client gets the same refusal for every reason; the log has the reason.
            logger.warning("connection %s: login refused for user %.300r%s",
                           connection.name, name, reason)  # fmt: skip
        self.broker.tick()
        answer(user)
        self.turn()

    async def _login(
        self, connection: Connection, name: str, password: str
    ) -> tuple[User | None, str]:
        """Returns the user, or None and the reason."""
        near = connection.peer_is_loopback
        found = self.find_token_user(password)
        if found is not None and found.name == name and (near or name != GUEST):
            return found, ""
        try:
            user = await self.logins.user(
                name,
                password,
                address=connection.address,
                loopback=near,
                is_gone=lambda: connection.is_closed,
            )
        except (TooManyFailures, TooManyAttempts) as error:
            return None, f": {error}"
        return user, GUEST_NOT_LOCAL if name == GUEST and not near else ""

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.error("listener task failed", exc_info=task.exception())
