"""What a publish method frame says, resolved: channel, exchange, rights, route.

An address is remembered as long as its route lives. It is `special` when each of its messages
has to be looked at: a header decides the route, a mandatory message has none, a queue may
refuse, a transaction keeps it until its commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ..route.exchange import Exchange
from ..route.route import Route
from ..wire.tables import syntax_error

if TYPE_CHECKING:
    from ..queue.queue import Queue
    from .channel import Channel
    from .publish import Publisher
    from .transaction import Transaction

MANDATORY = 1
IMMEDIATE = 2
UNDECODABLE = "exchange or routing key of a publish can't be decoded"


class Address:
    """`exchange` is None for the default exchange; `number` is the publisher's channel."""

    __slots__ = (
        "confirming", "envelope", "exchange", "immediate",
        "mandatory", "number", "publisher", "queues", "route", "routing_key", "special",
        "transaction",
    )  # fmt: skip

    def __init__(
        self,
        publisher: Publisher,
        number: int,
        envelope: bytes,
        exchange: Exchange | None,
        routing_key: str,
        flags: int,
        route: Route,
        transaction: Transaction | None = None,
    ) -> None:
        self.publisher = publisher
        self.number = number
        self.confirming = publisher.confirming
        self.envelope = envelope
        self.exchange = exchange
        self.routing_key = routing_key
        self.mandatory = bool(flags & MANDATORY)
        self.immediate = bool(flags & IMMEDIATE)
        self.route = route
        self.transaction = transaction
        self._lead_to(route)

    def aim_at(self, envelope: bytes, key: bytes) -> None:
        """The same exchange and flags with another routing key; `route` stays the watched one."""
        self.envelope = envelope
        try:
            self.routing_key = key.decode()
        except UnicodeDecodeError:
            raise syntax_error(UNDECODABLE) from None
        if self.route.uses_key and not self.route.uses_headers:
            route = self.publisher.vhost.route(
                self.exchange, (self.routing_key,), None, watched=False
            )
            self._lead_to(route)

    def _lead_to(self, route: Route) -> None:
        # Exchanges among the destinations have been followed: queues are what is left.
        self.queues = queues = cast("tuple[Queue, ...]", route.queues)
        self.special = self.immediate or (self.mandatory and not queues) or route.uses_headers
        if self.transaction is not None:
            self.special = True
            return
        for queue in queues:
            if queue.rules is not None and queue.rules.rejects:
                self.special = True


def read_address(channel: Channel, payload: bytes, *, watched: bool) -> Address:
    """Resolves the payload of a publish method frame (AMQP 0-9-1 1.8.3.7).

    Raises:
        ChannelError: 403 without write permission or for an internal exchange, 404 for an
            unknown one.
        ConnectionFault: 502 if the payload can't be decoded.
    """
    name, routing_key = split_publish(payload)
    vhost = channel.vhost
    channel.connection.user.require(vhost.name, "write", "exchange", name)
    exchange = vhost.publishable(name)
    route = vhost.route(exchange, (routing_key,), None, watched=watched)
    return Address(
        channel,
        channel.number,
        payload[6:-1],
        exchange,
        routing_key,
        payload[-1],
        route,
        channel.transaction,
    )


def split_publish(payload: bytes) -> tuple[str, str]:
    """Exchange and routing key of a publish method frame's payload. Raises as `read_address`."""
    try:
        exchange_end = 7 + payload[6]
        key_end = exchange_end + 1 + payload[exchange_end]
        name = payload[7:exchange_end].decode()
        routing_key = payload[exchange_end + 1 : key_end].decode()
    except (IndexError, UnicodeDecodeError):
        raise syntax_error(UNDECODABLE) from None
    if len(payload) != key_end + 1:
        raise syntax_error(f"publish method of {len(payload)} bytes, {key_end + 1} expected")
    return name, routing_key
