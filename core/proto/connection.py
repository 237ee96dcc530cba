"""The protocol state of one AMQP connection, without a socket.

`receive` takes the bytes that were read; output is buffered until the broker's turn ends.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from ..auth import User
from ..clock import wall_ms
from ..errors import ChannelError, ConnectionFault, ProtocolError
from ..queue.queue import OWNER_GONE
from ..slices import for_each
from ..wire.frames import method_frame
from ..wire.method_ids import CONNECTION_CLOSE, CONNECTION_CLOSE_OK, NO_METHOD
from .channel_table import ChannelTable, close_arguments
from .connection_state import ConnectionState
from .consumer_timeout import check
from .content import Contents
from .context import ConnectionContext
from .frame_reader import FrameReader
from .handshake import Handshake
from .output import ConnectionOutput, Transport
from .pending_input import PendingInput
from .publish_scanner import PublishScanner

if TYPE_CHECKING:
    from ..broker import Broker
    from ..message.queue_entry import MessageRange
    from ..vhost import VirtualHost

logger = logging.getLogger(__name__)

_PRE_TUNE_FRAME_MAX: Final = 8_192


class TlsFacts(NamedTuple):
    """Protocol and cipher of a connection by TLS, as OpenSSL calls them."""

    protocol: str
    cipher: str


class Connection(ConnectionContext):
    """The connection of one client; `peer_is_loopback` decides whether `guest` may log in.

    `certified` is the user name from a verified client certificate, if there is one. Without
    `takes_passwords` that is the only way to log in.
    """

    def __init__(
        self,
        broker: Broker,
        transport: Transport,
        *,
        name: str = "",
        address: str = "",
        peer_is_loopback: bool = True,
        certified: str | None = None,
        takes_passwords: bool = True,
        tls: TlsFacts | None = None,
        fast: bool = True,
    ) -> None:
        self.broker = broker
        self.name = name
        self.address = address
        self.peer_is_loopback = peer_is_loopback
        self.certified = certified
        self.takes_passwords = takes_passwords
        self.tls = tls
        self.mechanism = ""
        """How the client has logged in, such as `PLAIN`."""
        self.state = ConnectionState.HANDSHAKE
        self.user = User("")
        self._user_version = 0
        self.client_properties = {}
        self.wants_cancel_notify = False
        self.frame_max = _PRE_TUNE_FRAME_MAX
        self.channel_max = broker.limits.channel_max
        self.heartbeat_s = 0
        self.exclusive_queues = {}
        self.started_ms = broker.now_ms
        self.connected_at_ms = wall_ms(broker.clock)
        """Milliseconds since 1970."""
        self.received_ms = broker.now_ms
        self.closing_since_ms = 0
        self.current_method = NO_METHOD
        self.channels = ChannelTable()
        self.output = ConnectionOutput(broker, transport, self.channels)
        self.pending = PendingInput(broker, self.output)
        self.contents = Contents(self.pending, broker.limits.max_message_bytes)
        """Incomplete messages; while there are any, every frame is decoded by itself."""
        self.scanner = PublishScanner(self, self.channels)
        self.reader = FrameReader(broker, self.pending, self.output, self.scanner, fast=fast)
        self.handshake: Handshake | None = Handshake(self)
        broker.connections[self] = None

    def receive(self, data: bytes) -> None:
        self.pending.unfinished = False
        if data:
            self.received_ms = self.broker.now_ms
            self.broker.statistics.received(self.output.traffic, len(data))
        if self.user.version != self._user_version:
            self._user_changed()
        if self.state is not ConnectionState.CLOSED:
            self.reader.read(self, data)

    @property
    def buffered_bytes(self) -> int:
        """Bytes buffered for output or unparsed; incomplete messages are counted elsewhere."""
        output = self.output
        return output.pending_bytes + output.waiting_reply_bytes + len(self.pending.tail)

    @property
    def channel_count(self) -> int:
        return len(self.channels)

    @property
    def open_channel_count(self) -> int:
        return sum(channel.open for channel in self.channels.values())

    def unacked(self) -> Iterator[MessageRange]:
        for channel in list(self.channels.values()):
            yield from channel.deliveries.unacked.ranges()

    def check_timeouts(self, shortest_ms: int) -> None:
        check(self.channels, shortest_ms)

    # -- logging in

    def logged_in(self, user: User) -> None:
        self.user = user
        self._user_version = user.version

    def opened(self, vhost: VirtualHost) -> None:
        self.vhost = vhost
        self.state = ConnectionState.OPEN
        self.handshake = None
        self.broker.statistics.churned().connection_created += 1

    def _user_changed(self) -> None:
        """Drops cached rights; closes the connection if its user was removed."""
        self._user_version = self.user.version
        self.forget_targets()
        if self.user.removed:
            self.force(self.user.ending)

    def forget_targets(self) -> None:
        self.scanner.flush()
        self.scanner.forget()

    # -- the end

    def fail_channel(self, number: int, error: ChannelError, method: int) -> None:
        self.channels.fail(number, error, method)

    @property
    def is_open(self) -> bool:
        """Whether its client is logged in, in a virtual host."""
        return self.state is ConnectionState.OPEN

    @property
    def is_closed(self) -> bool:
        return self.state is ConnectionState.CLOSED

    def fail(self, error: ProtocolError) -> None:
        if self.state is not ConnectionState.OPEN and self.state is not ConnectionState.HANDSHAKE:
            return
        self.reader.lost_frames = error.code == 541
        # 320 is an operator's action, such as a stop, which would log a line for every client.
        level = logging.INFO if error.code == 320 else logging.WARNING
        logger.log(level, "connection %s: %s", self.name, error.reply_text)
        self._release()
        if self.handshake is not None and self.handshake.expects_header:
            self.finish()
            return
        self.state = ConnectionState.CLOSING
        self.closing_since_ms = self.broker.now_ms
        self.handshake = None
        arguments = close_arguments(error, self.current_method)
        self.output.write(method_frame(0, CONNECTION_CLOSE, arguments))
        self.current_method = NO_METHOD

    def force(self, reason: str) -> None:
        self.fail(ConnectionFault(320, reason))
        self.broker.on_work()

    def close_by_client(self) -> None:
        self._release()
        self.output.write(method_frame(0, CONNECTION_CLOSE_OK))
        self.finish()

    def abandon(self) -> None:
        """Ends the connection after its transport's close handshake or protocol error."""
        if not self.is_closed:
            self._release()
            self.finish()

    def finish(self) -> None:
        self.state = ConnectionState.CLOSED
        self.closing_since_ms = self.broker.now_ms
        self.handshake = None
        self.pending.drop()
        self.output.end()

    def lost(self) -> None:
        """Releases everything after the socket is lost."""
        if self.state is not ConnectionState.CLOSED:
            self._release()
            self.state = ConnectionState.CLOSED
        self.handshake = None
        self.pending.unfinished = False
        self.output.drop()
        self.scanner.end()

    def _release(self) -> None:
        """Requeues unacked messages, cancels consumers, deletes exclusive queues."""
        if self.state is ConnectionState.OPEN:
            self.broker.statistics.churned().connection_closed += 1
        self.output.forget_confirms()
        self.pending.end_waiting()
        self.broker.occupancy.leave(self)
        self.channels.end()
        queues, self.exclusive_queues = self.exclusive_queues, {}
        if queues:
            for queue in queues:
                queue.owner = OWNER_GONE
            self.broker.slices.start(for_each(queues, self.vhost.deletion.delete_queue))
        self.broker.connections.pop(self, None)
