"""The metrics of single objects, by the names that `/metrics/detailed?family=` knows from
RabbitMQ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

from ...core.broker import Broker
from ...core.proto.channel import Channel
from ...core.proto.connection import Connection
from ...core.proto.connection_state import ConnectionState
from ...core.proto.connections import connections_of
from ...core.queue.queue import Queue
from ...core.queue.size import message_bytes
from ...core.route.exchange import Exchange
from ...core.statistics.counters import Counted, MessageCounters, TrafficCounters
from ...core.vhost import VirtualHost
from .family import Kind
from .object_family import AnyGroup, ObjectFamily, ObjectGroup


def _queues(_: Broker, vhosts: Sequence[VirtualHost]) -> Iterator[Queue]:
    return (queue for vhost in vhosts for queue in vhost.queues.values())


def _exchanges(_: Broker, vhosts: Sequence[VirtualHost]) -> Iterator[Exchange]:
    return (exchange for vhost in vhosts for exchange in vhost.exchanges.values())


def _connections(broker: Broker, vhosts: Sequence[VirtualHost]) -> Iterator[Connection]:
    wanted = {vhost.name for vhost in vhosts}
    for connection in connections_of(broker):
        if connection.state is ConnectionState.OPEN and connection.vhost.name in wanted:
            yield connection


def _channels(broker: Broker, vhosts: Sequence[VirtualHost]) -> Iterator[Channel]:
    for connection in _connections(broker, vhosts):
        yield from connection.channels.values()


def _vhosts(_: Broker, vhosts: Sequence[VirtualHost]) -> Iterable[VirtualHost]:
    return vhosts


def _of_queues(*families: ObjectFamily[Queue]) -> AnyGroup:
    return ObjectGroup(
        _queues, ("vhost", "queue"), lambda queue: (queue.vhost, queue.name), families
    )


def _of_channels(*families: ObjectFamily[Channel]) -> AnyGroup:
    def name(channel: Channel) -> tuple[str, ...]:
        return f"{channel.connection.name} ({channel.number})", channel.vhost.name

    return ObjectGroup(_channels, ("channel", "vhost"), name, families)


def _of_connections(*families: ObjectFamily[Connection]) -> AnyGroup:
    def name(connection: Connection) -> tuple[str, ...]:
        return connection.name, connection.vhost.name

    return ObjectGroup(_connections, ("connection", "vhost"), name, families)


def _of_exchanges(*families: ObjectFamily[Exchange]) -> AnyGroup:
    def labels(exchange: Exchange) -> tuple[str, ...]:
        return exchange.vhost, exchange.name, exchange.type_name

    return ObjectGroup(_exchanges, ("vhost", "exchange", "type"), labels, families)


def _share_bytes(queue: Queue, count: int) -> int:
    """Returns about the size of so many of the queue's messages."""
    all_of_them = queue.ready_count + queue.unacked_count
    return message_bytes(queue) * count // all_of_them if count else 0


def _counted(name: str, help: str, field: str) -> ObjectFamily[Any]:
    """Returns a counter of an object that counts messages, from its first message on."""
    read: Callable[[MessageCounters], int] = attrgetter(field)

    def value(counted: Counted) -> int:
        return 0 if counted.counters is None else read(counted.counters)

    return ObjectFamily(name, Kind.COUNTER, help, value)


def _traffic(name: str, help: str, field: str) -> ObjectFamily[Connection]:
    read: Callable[[TrafficCounters], int] = attrgetter(field)
    return ObjectFamily(
        name, Kind.COUNTER, help, lambda connection: read(connection.output.traffic)
    )


_CONSUMERS: Final[ObjectFamily[Queue]] = ObjectFamily(
    "queue_consumers", Kind.GAUGE, "Consumers on a queue", lambda queue: queue.consumer_count
)

CHANNEL_GAUGES: Final[Sequence[ObjectFamily[Channel]]] = (
    ObjectFamily(
        "channel_consumers", Kind.GAUGE, "Consumers on a channel",
        lambda channel: len(channel.consumers),
    ),
    ObjectFamily(
        "channel_messages_unacked", Kind.GAUGE, "Delivered but not yet acknowledged messages",
        lambda channel: channel.unacked_count,
    ),
    ObjectFamily(
        "channel_messages_unconfirmed", Kind.GAUGE, "Published but not yet confirmed messages",
        lambda channel: 0 if channel.confirms is None else channel.confirms.unanswered,
    ),
    ObjectFamily(
        "channel_acks_uncommitted", Kind.GAUGE,
        "Acknowledgements in a transaction that is not yet committed",
        lambda channel: 0 if channel.transaction is None else channel.transaction.settled,
    ),
    ObjectFamily(
        "consumer_prefetch", Kind.GAUGE, "Limit of unacknowledged messages for each consumer",
        lambda channel: channel.default_prefetch,
    ),
    ObjectFamily(
        "channel_prefetch", Kind.GAUGE,
        "Limit of unacknowledged messages for all consumers on a channel",
        lambda channel: channel.prefetch,
    ),
)  # fmt: skip
CONNECTION_GAUGES: Final[Sequence[ObjectFamily[Connection]]] = (
    ObjectFamily(
        "connection_channels", Kind.GAUGE, "Channels on a connection",
        lambda connection: len(connection.channels),
    ),
    ObjectFamily(
        "connection_pending_bytes", Kind.GAUGE, "Bytes that wait to be sent or parsed",
        lambda connection: connection.buffered_bytes,
    ),
)  # fmt: skip

GROUPS: Final[Mapping[str, AnyGroup]] = {
    "queue_coarse_metrics": _of_queues(
        ObjectFamily(
            "queue_messages_ready", Kind.GAUGE, "Messages ready to be delivered to consumers",
            lambda queue: queue.ready_count,
        ),
        ObjectFamily(
            "queue_messages_unacked", Kind.GAUGE,
            "Messages delivered to consumers but not yet acknowledged",
            lambda queue: queue.unacked_count,
        ),
        ObjectFamily(
            "queue_messages", Kind.GAUGE, "Sum of ready and unacknowledged messages",
            lambda queue: queue.ready_count + queue.unacked_count,
        ),
    ),
    "queue_delivery_metrics": _of_queues(
        _counted("queue_messages_published_total", "Messages that came into a queue", "publish"),
        _counted(
            "queue_messages_delivered_ack_total", "Deliveries to consumers with ack", "deliver"
        ),
        _counted(
            "queue_messages_delivered_total", "Deliveries to consumers without ack",
            "deliver_no_ack",
        ),
        _counted(
            "queue_messages_redelivered_total", "Deliveries that were not the first", "redeliver"
        ),
        _counted("queue_messages_acked_total", "Deliveries that were acknowledged", "ack"),
        _counted("queue_get_ack_total", "Deliveries by basic.get with ack", "get"),
        _counted("queue_get_total", "Deliveries by basic.get without ack", "get_no_ack"),
        _counted("queue_get_empty_total", "basic.get that found nothing", "get_empty"),
    ),
    "queue_consumer_count": _of_queues(_CONSUMERS),
    "queue_metrics": _of_queues(
        _CONSUMERS,
        ObjectFamily(
            "queue_messages_bytes", Kind.GAUGE, "About the size of ready and unacked messages",
            message_bytes,
        ),
        ObjectFamily(
            "queue_messages_ready_bytes", Kind.GAUGE, "About the size of ready messages",
            lambda queue: _share_bytes(queue, queue.ready_count),
        ),
        ObjectFamily(
            "queue_messages_unacked_bytes", Kind.GAUGE, "About the size of unacked messages",
            lambda queue: _share_bytes(queue, queue.unacked_count),
        ),
    ),
    "channel_metrics": _of_channels(*CHANNEL_GAUGES),
    "channel_exchange_metrics": _of_channels(
        _counted("channel_messages_published_total", "Messages published", "publish"),
        _counted("channel_messages_confirmed_total", "Messages confirmed", "confirm"),
        _counted(
            "channel_messages_unroutable_returned_total", "Mandatory messages returned",
            "return_unroutable",
        ),
        _counted(
            "channel_messages_unroutable_dropped_total", "Messages that no queue wanted",
            "drop_unroutable",
        ),
    ),
    "channel_queue_metrics": _of_channels(
        _counted(
            "channel_messages_delivered_ack_total", "Deliveries to consumers with ack", "deliver"
        ),
        _counted(
            "channel_messages_delivered_total", "Deliveries to consumers without ack",
            "deliver_no_ack",
        ),
        _counted(
            "channel_messages_redelivered_total", "Deliveries that were not the first",
            "redeliver",
        ),
        _counted("channel_messages_acked_total", "Deliveries that were acknowledged", "ack"),
        _counted("channel_get_ack_total", "Deliveries by basic.get with ack", "get"),
        _counted("channel_get_total", "Deliveries by basic.get without ack", "get_no_ack"),
        _counted("channel_get_empty_total", "basic.get that found nothing", "get_empty"),
    ),
    "connection_coarse_metrics": _of_connections(
        _traffic("connection_incoming_bytes_total", "Bytes from the client", "received_bytes"),
        _traffic("connection_outgoing_bytes_total", "Bytes to the client", "sent_bytes"),
    ),
    "connection_metrics": _of_connections(
        _traffic("connection_incoming_packets_total", "Reads from the client", "reads"),
        _traffic("connection_outgoing_packets_total", "Writes to the client", "writes"),
        *CONNECTION_GAUGES,
    ),
}  # fmt: skip

CLUSTER_GROUPS: Final[Mapping[str, AnyGroup]] = {
    "vhost_status": ObjectGroup(
        _vhosts, ("vhost",), lambda vhost: (vhost.name,),
        (ObjectFamily("vhost_status", Kind.GAUGE, "1 for a virtual host that runs", lambda _: 1),),
    ),
    "exchange_bindings": _of_exchanges(
        ObjectFamily(
            "exchange_bindings", Kind.GAUGE, "Bindings of an exchange",
            lambda exchange: exchange.binding_count,
        ),
    ),
    "exchange_names": _of_exchanges(
        ObjectFamily("exchange_name", Kind.GAUGE, "Exchanges, without figures", lambda _: 1),
    ),
}  # fmt: skip
"""The groups with the prefix `rabbitmq_cluster_`."""
