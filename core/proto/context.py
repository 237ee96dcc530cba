"""Connections and channels, as the parts that they are made of see them."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from ..context import ClientConnection

if TYPE_CHECKING:
    from ..auth import User
    from ..broker import Broker
    from ..errors import ChannelError, ProtocolError
    from ..message.model import Table
    from ..message.queue_entry import MessageRange
    from ..queue.consumer import Consumer
    from ..queue.queue import Queue
    from ..queue.unacked import DeliveryRange
    from ..statistics.counters import MessageCounters
    from ..vhost import VirtualHost
    from .channel_consumer import ChannelConsumer
    from .confirms import Confirms
    from .connection_state import ConnectionState
    from .content import Content, Contents
    from .deliveries import Deliveries
    from .output import ConnectionOutput
    from .pending_input import PendingInput


class ConnectionContext(ClientConnection):
    """A connection, see `Connection`."""

    address: str
    broker: Broker
    certified: str | None
    channel_max: int
    client_properties: Table
    contents: Contents
    current_method: int
    """The method that an error is reported for."""
    exclusive_queues: dict[Queue, None]
    frame_max: int
    heartbeat_s: int
    mechanism: str
    name: str
    output: ConnectionOutput
    peer_is_loopback: bool
    pending: PendingInput
    state: ConnectionState
    takes_passwords: bool
    vhost: VirtualHost
    wants_cancel_notify: bool

    def receive(self, data: bytes) -> None:
        """Handles bytes from the client, cut anywhere; never raises for what a client sent."""
        raise NotImplementedError

    def logged_in(self, user: User) -> None:
        raise NotImplementedError

    def opened(self, vhost: VirtualHost) -> None:
        """Ends the handshake: the client has opened a virtual host."""
        raise NotImplementedError

    def forget_targets(self) -> None:
        """Publishes what was gathered and drops the resolved publish targets, after a change of a
        channel's mode or of rights."""
        raise NotImplementedError

    def fail_channel(self, number: int, error: ChannelError, method: int) -> None:
        """Closes a channel with the error's code; `method` caused it."""
        raise NotImplementedError

    def fail(self, error: ProtocolError) -> None:
        """Closes the connection with the error's code and waits for close-ok."""
        raise NotImplementedError

    def close_by_client(self) -> None:
        """Handles connection.close: releases everything, then sends close-ok."""
        raise NotImplementedError

    def finish(self) -> None:
        """Flushes the output and closes the transport; later input is discarded."""
        raise NotImplementedError


class ChannelContext:
    """A channel, see `Channel`."""

    __slots__ = (
        "answers_wait", "broker", "confirms", "connection", "consumers", "content", "counters",
        "deliveries", "next_tag", "number", "open", "output",
    )  # fmt: skip

    answers_wait: bool
    """Replies wait behind a tx.commit that waits for the disk; deliveries wait with them."""
    broker: Broker
    confirms: Confirms | None
    connection: ConnectionContext
    consumers: dict[str, ChannelConsumer]
    content: Content | None
    counters: MessageCounters | None
    deliveries: Deliveries
    next_tag: int
    number: int
    open: bool
    output: ConnectionOutput

    @property
    def user(self) -> User:
        raise NotImplementedError

    @property
    def vhost(self) -> VirtualHost:
        raise NotImplementedError

    @property
    def writable(self) -> bool:
        """Whether its consumers may get more in this turn."""
        raise NotImplementedError

    def deliver(
        self, consumer: Consumer, messages: MessageRange, rewritten: MessageRange | None = None
    ) -> None:
        raise NotImplementedError

    def reopen_consumers(self) -> None:
        """Lets all consumers take messages again after output, prefetch or flow allows it."""
        raise NotImplementedError

    def credit_back(self, settled: Collection[DeliveryRange]) -> None:
        """Returns the prefetch credit of settled deliveries."""
        raise NotImplementedError
