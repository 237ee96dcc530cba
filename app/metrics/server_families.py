"""The metrics of the process: identity, memory, disk, files, event loop and log.

`rabbitmq_` is the prefix of those that RabbitMQ has too, for boards and rules that were made for
it; all others begin with `warren_`.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Sequence
from typing import Final

from ... import core
from ...core.proto.server_properties import COMPATIBLE_VERSION
from ..node import ERLANG
from .family import Family, Kind, Samples, counter, gauge, histogram
from .totals import Scrape


def _identity(scrape: Scrape) -> Samples:
    node, broker = scrape.server.node, scrape.server.broker
    cluster = broker.global_parameters.cluster_name
    return [((node.name, cluster, broker.store.store_id.hex(), scrape.endpoint), 1)]


def _max_files() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def _open_files(_: Scrape) -> int:
    for path in ("/proc/self/fd", "/dev/fd"):
        if os.path.isdir(path):
            return len(os.listdir(path)) - 1  # without the one that lists them
    return 0


IDENTITY: Final[Sequence[Family[Scrape]]] = (
    Family(
        "rabbitmq_identity_info", Kind.GAUGE, "Node, cluster and data directory",
        _identity,
        (
            "rabbitmq_node", "rabbitmq_cluster", "rabbitmq_cluster_permanent_id",
            "rabbitmq_endpoint",
        ),
    ),
    Family(
        "rabbitmq_build_info", Kind.GAUGE,
        "The version of RabbitMQ whose features clients may expect",
        lambda _: [((COMPATIBLE_VERSION, ERLANG, core.VERSION), 1)],
        ("rabbitmq_version", "erlang_version", "warren_version"),
    ),
)  # fmt: skip

PROCESS: Final[Sequence[Family[Scrape]]] = (
    *IDENTITY,
    gauge("rabbitmq_erlang_uptime_seconds", "How long the server has run",
        lambda scrape: scrape.server.monitor.uptime_s,
    ),
    gauge(
        "rabbitmq_process_resident_memory_bytes", "Resident memory of the process",
        lambda scrape: scrape.server.broker.alarms.reading.rss_bytes or 0,
    ),
    gauge("rabbitmq_process_open_fds", "Open files and sockets", _open_files),
    gauge(
        "rabbitmq_process_max_fds", "Files and sockets that the process may open",
        lambda _: _max_files(),
    ),
    histogram(
        "warren_event_loop_lag_seconds", "How late the event loop was, seen ten times a second",
        lambda scrape: scrape.server.monitor.lag_s,
    ),
    histogram(
        "warren_garbage_collector_pause_seconds", "Passes of the garbage collector",
        lambda scrape: scrape.server.monitor.collector_s,
    ),
)  # fmt: skip
"""Those that hold on each engine."""

FAMILIES: Final[Sequence[Family[Scrape]]] = (
    *PROCESS,
    gauge(
        "rabbitmq_resident_memory_limit_bytes",
        "Accounted memory from which publishers have to wait; 0: no limit",
        lambda scrape: scrape.server.broker.alarms.bounds.memory,
    ),
    gauge(
        "rabbitmq_disk_space_available_bytes", "Free space of the data directory's disk",
        lambda scrape: scrape.server.broker.alarms.reading.disk_free_bytes or 0,
    ),
    gauge(
        "rabbitmq_disk_space_available_limit_bytes",
        "Free space below which publishers have to wait; 0: no limit",
        lambda scrape: scrape.server.broker.alarms.bounds.disk_free,
    ),
    gauge(
        "rabbitmq_process_open_tcp_sockets", "Open AMQP connections",
        lambda scrape: scrape.broker.connections,
    ),
    gauge(
        "rabbitmq_process_max_tcp_sockets", "As rabbitmq_process_max_fds", lambda _: _max_files(),
    ),
    counter(
        "rabbitmq_io_sync_ops_total", "Syncs of the log",
        lambda scrape: scrape.server.broker.store.write_metrics.sync_s.cumulative()[-1],
    ),
    counter(
        "rabbitmq_io_sync_time_seconds_total", "Time of the syncs of the log",
        lambda scrape: scrape.server.broker.store.write_metrics.sync_s.sum,
    ),
    gauge(
        "rabbitmq_alarms_memory_used_watermark", "1 while publishers wait for memory",
        lambda scrape: int(scrape.server.broker.alarms.memory),
    ),
    gauge(
        "rabbitmq_alarms_free_disk_space_watermark", "1 while publishers wait for the disk",
        lambda scrape: int(scrape.server.broker.alarms.disk),
    ),
    gauge(
        "rabbitmq_alarms_file_descriptor_limit", "Always 0: not an alarm in Warren", lambda _: 0,
    ),
    gauge(
        "warren_accounted_memory_bytes",
        "Memory of messages, buffers and objects, which the limit is compared with",
        lambda scrape: scrape.server.broker.alarms.used_bytes,
    ),
    gauge(
        "warren_message_memory_bytes", "Memory of messages",
        lambda scrape: scrape.server.broker.memory.resident_bytes,
    ),
    histogram(
        "warren_log_sync_seconds", "How long the disk took to sync the log",
        lambda scrape: scrape.server.broker.store.write_metrics.sync_s,
    ),
    histogram(
        "warren_log_commit_bytes", "Bytes that one sync of the log made durable",
        lambda scrape: scrape.server.broker.store.write_metrics.commit_bytes,
    ),
    gauge(
        "warren_log_behind_bytes", "Bytes that wait to be written to the log",
        lambda scrape: scrape.server.broker.store.progress.behind_bytes,
    ),
    gauge(
        "warren_quarantined_messages", "Messages whose queue's definition was lost",
        lambda scrape: sum(scrape.server.broker.store.recovered.quarantine.values()),
    ),
)  # fmt: skip
