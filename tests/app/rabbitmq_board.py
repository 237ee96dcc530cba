"""The queries of a board for RabbitMQ: an overview whose panels each join a metric with the
identity of its node, and choose a cluster by it.

They are written from the names of metrics alone (docs/metrics.md), not from a board.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

_IDENTITY: Final = 'rabbitmq_identity_info{{rabbitmq_cluster="{cluster}", namespace=""}}'
_JOIN: Final = f"* on(instance, job) group_left(rabbitmq_cluster, rabbitmq_node) {_IDENTITY}"
_TOTALS: Final = (
    "connections", "channels", "consumers", "queues", "queue_messages", "queue_messages_ready",
    "queue_messages_unacked", "global_publishers", "global_consumers",
)  # fmt: skip
"""One number each at the top of the board, and by node further down."""
_RATES: Final = (
    *(f"global_messages_{name}_total" for name in (
        "received", "received_confirm", "confirmed", "routed", "unroutable_dropped",
        "unroutable_returned", "delivered", "delivered_consume_auto_ack",
        "delivered_consume_manual_ack", "delivered_get_auto_ack", "delivered_get_manual_ack",
        "get_empty", "redelivered", "acknowledged",
    )),
    *(f"global_messages_dead_lettered_{name}_total" for name in (
        "expired", "rejected", "maxlen", "delivery_limit", "confirmed",
    )),
    "connections_opened_total", "connections_closed_total", "channels_opened_total",
    "channels_closed_total", "queues_declared_total", "queues_created_total",
    "queues_deleted_total", "auth_attempts_succeeded_total", "auth_attempts_failed_total",
)  # fmt: skip
"""By node, as graphs."""
_LEFT: Final = {
    "memory before publishers wait": (
        "resident_memory_limit_bytes", "process_resident_memory_bytes",
    ),
    "disk before publishers wait": (
        "disk_space_available_bytes", "disk_space_available_limit_bytes",
    ),
    "files": ("process_max_fds", "process_open_fds"),
    "sockets": ("process_max_tcp_sockets", "process_open_tcp_sockets"),
}  # fmt: skip
"""What is left: the difference of two gauges."""


def panels(cluster: str) -> Iterator[tuple[str, str]]:
    """Yields title and query of each panel."""
    join = _JOIN.format(cluster=cluster)
    yield "nodes", f"rabbitmq_build_info {join}"
    yield "uptime", f"rabbitmq_erlang_uptime_seconds {join}"
    for name in _TOTALS:
        yield name, f"sum(rabbitmq_{name} {join})"
        yield f"{name} by node", f"sum(rabbitmq_{name} {join}) by(rabbitmq_node)"
    for title, (most, used) in _LEFT.items():
        yield title, f"(rabbitmq_{most} {join}) - (rabbitmq_{used} {join})"
    for name in _RATES:
        yield name, f"sum(rate(rabbitmq_{name}[60s]) {join}) by(rabbitmq_node)"
    received, confirmed = (
        f"sum(rate(rabbitmq_global_messages_{name}_total[60s]) {join}) by(rabbitmq_node)"
        for name in ("received_confirm", "confirmed")
    )
    yield "unconfirmed", f"{received} - {confirmed}"
    for resource in ("memory_used", "free_disk_space"):
        yield f"alarm of {resource}", f"max(rabbitmq_alarms_{resource}_watermark {join})"
    buckets = f"sum(rate(rabbitmq_message_size_bytes_bucket[60s]) {join}) by(le)"
    yield "sizes", buckets
    yield "size of 95 %", f"histogram_quantile(0.95, {buckets})"


def variables() -> Iterator[tuple[str, str]]:
    """Yields the labels of the identity that the board's menus list, each with its query."""
    for label in ("rabbitmq_cluster", "rabbitmq_endpoint", "rabbitmq_node"):
        yield label, f"count(rabbitmq_identity_info) by({label})"
