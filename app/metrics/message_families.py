"""The metrics of messages, connections and queues, over all of them, with RabbitMQ's names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Final

from ...core.statistics.statistics import Statistics
from .family import Family, Kind, Samples, counter, gauge
from .object_groups import CHANNEL_GAUGES, CONNECTION_GAUGES
from .totals import Scrape

PROTOCOL: Final = "amqp091"
"""Of everything, since RabbitMQ's boards ask for it; the hub and HTTP are clients like others."""
QUEUE_TYPE: Final = "rabbit_classic_queue"
"""Of every queue: messages are counted over all types here."""
STRATEGY: Final = "at_most_once"


def _statistics(scrape: Scrape) -> Statistics:
    return scrape.server.broker.statistics


def _published(name: str, help: str, field: str) -> Family[Scrape]:
    """Returns a counter of what publishers do."""
    read: Callable[[Statistics], int] = attrgetter(f"total.{field}")

    def samples(scrape: Scrape) -> Samples:
        return [((PROTOCOL,), read(_statistics(scrape)))]

    return Family(
        f"rabbitmq_global_messages_{name}_total", Kind.COUNTER, help, samples, ("protocol",)
    )


def _delivered(name: str, help: str, field: str) -> Family[Scrape]:
    """Returns a counter of what happens to messages in queues."""
    read: Callable[[Statistics], int] = attrgetter(f"total.{field}")

    def samples(scrape: Scrape) -> Samples:
        return [((PROTOCOL, QUEUE_TYPE), read(_statistics(scrape)))]

    name = f"rabbitmq_global_messages_{name}_total"
    return Family(name, Kind.COUNTER, help, samples, ("protocol", "queue_type"))


def _dead_lettered(reason: str, help: str) -> Family[Scrape]:
    """Returns a counter of dead letters by the reason in x-death."""

    def samples(scrape: Scrape) -> Samples:
        return [((QUEUE_TYPE, STRATEGY), _statistics(scrape).dead_letters.get(reason, 0))]

    name = f"rabbitmq_global_messages_dead_lettered_{reason}_total"
    return Family(name, Kind.COUNTER, help, samples, ("queue_type", "dead_letter_strategy"))


def _churn(name: str, help: str, field: str) -> Family[Scrape]:
    read: Callable[[Statistics], int] = attrgetter(f"churn.{field}")
    return counter(f"rabbitmq_{name}_total", help, lambda scrape: read(_statistics(scrape)))


def _logins(name: str, help: str, *fields: str) -> Family[Scrape]:
    def samples(scrape: Scrape) -> Samples:
        churn = _statistics(scrape).churn
        return [((PROTOCOL,), sum(getattr(churn, field) for field in fields))]

    return Family(f"rabbitmq_auth_attempts{name}_total", Kind.COUNTER, help, samples, ("protocol",))


CHURN: Final[Sequence[Family[Scrape]]] = (
    _churn("connections_opened", "Connections that were opened", "connection_created"),
    _churn("connections_closed", "Connections that were closed", "connection_closed"),
    _churn("channels_opened", "Channels that were opened", "channel_created"),
    _churn("channels_closed", "Channels that were closed", "channel_closed"),
    _churn("queues_declared", "Declarations of queues", "queue_declared"),
    _churn("queues_created", "Queues that were created", "queue_created"),
    _churn("queues_deleted", "Queues that were deleted", "queue_deleted"),
)  # fmt: skip

FAMILIES: Final[Sequence[Family[Scrape]]] = (
    gauge(
        "rabbitmq_connections", "Open AMQP connections", lambda scrape: scrape.broker.connections
    ),
    gauge("rabbitmq_channels", "Open channels", lambda scrape: scrape.broker.channels),
    gauge(
        "rabbitmq_consumers", "Consumers, those of the hub included",
        lambda scrape: scrape.broker.consumers,
    ),
    gauge("rabbitmq_queues", "Queues", lambda scrape: scrape.broker.queues),
    gauge("warren_exchanges", "Exchanges", lambda scrape: scrape.broker.exchanges),
    gauge("warren_bindings", "Bindings", lambda scrape: scrape.broker.bindings),
    Family(
        "rabbitmq_global_consumers", Kind.GAUGE, "Consumers, those of the hub included",
        lambda scrape: [((PROTOCOL,), scrape.broker.consumers)], ("protocol",),
    ),
    Family(
        "rabbitmq_global_publishers", Kind.GAUGE, "Open channels that have published",
        lambda scrape: [((PROTOCOL,), scrape.broker.publishers)], ("protocol",),
    ),
    _published("received", "Messages that were published", "publish"),
    _published(
        "received_confirm", "Messages that were published with confirms", "publish_confirm"
    ),
    _published("confirmed", "Publishes that were confirmed", "confirm"),
    _published("routed", "Copies of messages that went into queues", "publish_out"),
    _published(
        "unroutable_dropped", "Messages that no queue wanted, dropped", "drop_unroutable"
    ),
    _published(
        "unroutable_returned", "Mandatory messages that no queue wanted, returned",
        "return_unroutable",
    ),
    _delivered("delivered", "Deliveries to consumers and by basic.get", "deliver_get"),
    _delivered(
        "delivered_consume_auto_ack", "Deliveries to consumers without ack", "deliver_no_ack"
    ),
    _delivered("delivered_consume_manual_ack", "Deliveries to consumers with ack", "deliver"),
    _delivered("delivered_get_auto_ack", "Deliveries by basic.get without ack", "get_no_ack"),
    _delivered("delivered_get_manual_ack", "Deliveries by basic.get with ack", "get"),
    _delivered("get_empty", "basic.get of an empty queue", "get_empty"),
    _delivered("redelivered", "Deliveries that were not the first of their message", "redeliver"),
    _delivered("acknowledged", "Deliveries that were acknowledged", "ack"),
    _dead_lettered("expired", "Dead letters that have expired"),
    _dead_lettered("rejected", "Dead letters that were rejected"),
    _dead_lettered("maxlen", "Dead letters of queues that were full"),
    _dead_lettered("delivery_limit", "Dead letters that were returned too often"),
    Family(
        "rabbitmq_global_messages_dead_lettered_confirmed_total", Kind.COUNTER,
        "All dead letters: moving one is atomic, so none needs another confirm",
        lambda scrape: [
            ((QUEUE_TYPE, "at_least_once"), sum(_statistics(scrape).dead_letters.values()))
        ],
        ("queue_type", "dead_letter_strategy"),
    ),
    Family(
        "rabbitmq_message_size_bytes", Kind.HISTOGRAM,
        "Messages that were routed, by size with their frames; those of one read count with their "
        "mean",
        lambda scrape: [((PROTOCOL,), _statistics(scrape).message_bytes)], ("protocol",),
    ),
    counter(
        "warren_received_bytes_total", "Bytes from AMQP clients",
        lambda scrape: _statistics(scrape).traffic.received_bytes,
    ),
    counter(
        "warren_sent_bytes_total", "Bytes to AMQP clients",
        lambda scrape: _statistics(scrape).traffic.sent_bytes,
    ),
    *CHURN,
    _logins("", "Logins over AMQP", "login_succeeded", "login_failed"),
    _logins("_succeeded", "Logins over AMQP that succeeded", "login_succeeded"),
    _logins("_failed", "Logins over AMQP that failed", "login_failed"),
)  # fmt: skip


def _total(name: str, help: str, field: str) -> Family[Scrape]:
    """Returns the total of a counter that single channels or queues have."""
    read: Callable[[Statistics], int] = attrgetter(f"total.{field}")
    return counter(f"rabbitmq_{name}_total", help, lambda scrape: read(_statistics(scrape)))


def _sum(name: str, help: str) -> Family[Scrape]:
    """Returns the sum of a gauge that single channels or connections have."""
    return gauge(f"rabbitmq_{name}", help, lambda scrape: scrape.broker.sums[name])


def _traffic(name: str, help: str, field: str) -> Family[Scrape]:
    """Returns the total of a counter that single connections have."""
    read: Callable[[Statistics], int] = attrgetter(f"traffic.{field}")
    return counter(
        f"rabbitmq_connection_{name}_total", help, lambda scrape: read(_statistics(scrape))
    )


OBJECT_TOTALS: Final[Sequence[Family[Scrape]]] = (
    gauge(
        "rabbitmq_queue_messages_ready", "Messages ready to be delivered to consumers",
        lambda scrape: scrape.broker.ready,
    ),
    gauge(
        "rabbitmq_queue_messages_unacked",
        "Messages delivered to consumers but not yet acknowledged",
        lambda scrape: scrape.broker.unacked,
    ),
    gauge(
        "rabbitmq_queue_messages", "Sum of ready and unacknowledged messages",
        lambda scrape: scrape.broker.ready + scrape.broker.unacked,
    ),
    gauge(
        "rabbitmq_queue_consumers", "Consumers on queues", lambda scrape: scrape.broker.consumers
    ),
    gauge(
        "rabbitmq_queue_messages_bytes", "About the size of ready and unacked messages",
        lambda scrape: scrape.broker.ready_bytes + scrape.broker.unacked_bytes,
    ),
    gauge(
        "rabbitmq_queue_messages_ready_bytes", "About the size of ready messages",
        lambda scrape: scrape.broker.ready_bytes,
    ),
    gauge(
        "rabbitmq_queue_messages_unacked_bytes", "About the size of unacked messages",
        lambda scrape: scrape.broker.unacked_bytes,
    ),
    *(_sum(one.name, one.help) for one in CHANNEL_GAUGES),
    *(_sum(one.name, one.help) for one in CONNECTION_GAUGES),
    _traffic("incoming_bytes", "Bytes from AMQP clients", "received_bytes"),
    _traffic("outgoing_bytes", "Bytes to AMQP clients", "sent_bytes"),
    _traffic("incoming_packets", "Reads from AMQP clients", "reads"),
    _traffic("outgoing_packets", "Writes to AMQP clients", "writes"),
    _total("queue_messages_published", "Messages that came into queues", "publish_out"),
    _total("queue_messages_delivered_ack", "Deliveries to consumers with ack", "deliver"),
    _total("queue_messages_delivered", "Deliveries to consumers without ack", "deliver_no_ack"),
    _total("queue_messages_redelivered", "Deliveries that were not the first", "redeliver"),
    _total("queue_messages_acked", "Deliveries that were acknowledged", "ack"),
    _total("queue_get_ack", "Deliveries by basic.get with ack", "get"),
    _total("queue_get", "Deliveries by basic.get without ack", "get_no_ack"),
    _total("queue_get_empty", "basic.get that found nothing", "get_empty"),
    _total("channel_messages_published", "Messages published", "publish"),
    _total("channel_messages_confirmed", "Messages confirmed", "confirm"),
    _total(
        "channel_messages_unroutable_returned", "Mandatory messages returned", "return_unroutable"
    ),
    _total(
        "channel_messages_unroutable_dropped", "Messages that no queue wanted", "drop_unroutable"
    ),
    _total("channel_messages_delivered_ack", "Deliveries to consumers with ack", "deliver"),
    _total("channel_messages_delivered", "Deliveries to consumers without ack", "deliver_no_ack"),
    _total("channel_messages_redelivered", "Deliveries that were not the first", "redeliver"),
    _total("channel_messages_acked", "Deliveries that were acknowledged", "ack"),
    _total("channel_get_ack", "Deliveries by basic.get with ack", "get"),
    _total("channel_get", "Deliveries by basic.get without ack", "get_no_ack"),
    _total("channel_get_empty", "basic.get that found nothing", "get_empty"),
)  # fmt: skip
"""Families that single objects have too, under the same names."""
