"""Metrics of a real RabbitMQ beside Warren's: what differs is listed, with the reason."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from prometheus_client.parser import text_string_to_metric_families

from tests.support.process import wait_until
from tests.support.rabbitmq import RabbitMQServer
from tests.support.server import WarrenServer

Labels = dict[str, frozenset[str]]
"""The names of labels, by the name of a metric."""

MISSING = {
    r"erlang_\w+|telemetry_\w+|rabbitmq_erlang_(?!uptime)\w+": "there is no Erlang machine",
    r"rabbitmq_\w+_process_reductions_total": "there are no Erlang processes",
    r"rabbitmq_raft_\w+": "there is one node, without Raft",
    r"rabbitmq_(schema_db|msg_store|queue_index)_\w+": "there is one log: warren_log_*",
    r"rabbitmq_io_(?!sync)\w+": "the log has warren_log_*",
    r"rabbitmq_queue_disk_\w+": "the log is one for all queues",
    r"rabbitmq_queue_consumer_(capacity|utilisation)": "not measured",
    r"rabbitmq_queue_head_message_timestamp": "would read messages back from disk",
    r"rabbitmq_queue_messages_(\w*ram|ram_bytes|persistent\w*|paged_out\w*)":
        "to count them for each queue, long ones are walked through",
    r"rabbitmq_queue_process_memory_bytes": "warren_message_memory_bytes is that of all",
    r"rabbitmq_channel_messages_uncommitted": "not counted",
    r"rabbitmq_connection_pending_packets": "bytes are: rabbitmq_connection_pending_bytes",
    r"process_start_time_seconds": "rabbitmq_erlang_uptime_seconds says the same",
}  # fmt: skip
OTHER_LABELS = {
    r"rabbitmq_channel_\w+|rabbitmq_consumer_prefetch": {"channel", "vhost"},
    r"rabbitmq_connection_\w+": {"connection", "vhost"},
    r"rabbitmq_queue_messages_published_total": {"vhost", "queue"},
    r"rabbitmq_build_info": {"rabbitmq_version", "erlang_version", "warren_version"},
    r"rabbitmq_identity_info": {
        "rabbitmq_node", "rabbitmq_cluster", "rabbitmq_cluster_permanent_id", "rabbitmq_endpoint",
    },
}  # fmt: skip
"""Objects have their names, where RabbitMQ has process ids; of 4.x is the endpoint."""


@pytest.fixture(scope="module")
def channels(rabbitmq: RabbitMQServer) -> Iterator[tuple[str, str]]:
    """The URLs of the metrics of both, each with a connection that has published and consumed."""
    with WarrenServer() as warren:
        connections = [
            pika.BlockingConnection(pika.URLParameters(url))
            for url in (rabbitmq.amqp_url, warren.amqp_url)
        ]
        for connection in connections:
            use(connection.channel())
            connection.process_data_events(0.1)
        yield f"http://127.0.0.1:{rabbitmq.prometheus_port}", warren.http_url
        for connection in connections:
            connection.close()


def use(channel: BlockingChannel) -> None:
    channel.queue_declare("q")
    channel.confirm_delivery()
    channel.basic_publish("", "q", b"x")
    channel.basic_consume("q", lambda *_: None)


def labels(url: str) -> Labels:
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(httpx.get(url).text):
        for one in family.samples:
            found.setdefault(one.name, set()).update(one.labels)
    return {name: frozenset(names) for name, names in found.items()}


def differing(rabbit: Labels, warren: Labels) -> dict[str, frozenset[str] | None]:
    """Warren's labels of the metrics that are not as RabbitMQ's, None for one that it has not."""
    return {name: warren.get(name) for name in rabbit if warren.get(name) != rabbit[name]}


def is_listed(name: str, found: frozenset[str] | None) -> bool:
    if found is None:
        return any(re.fullmatch(pattern, name) for pattern in MISSING)
    return any(
        re.fullmatch(pattern, name) and found == names for pattern, names in OTHER_LABELS.items()
    )


@pytest.mark.parametrize("path", ["/metrics", "/metrics/per-object"])
def test_labels_differ_from_those_of_rabbitmq_only_where_listed(
    channels: tuple[str, str], path: str
) -> None:
    rabbitmq, warren = channels
    counted = "rabbitmq_channel_messages_published_total"
    wait_until(lambda: counted in labels(rabbitmq + path), 30, "RabbitMQ has counted")
    found = differing(labels(rabbitmq + path), labels(warren + path))
    unlisted = {name: names for name, names in found.items() if not is_listed(name, names)}
    assert unlisted == {}
