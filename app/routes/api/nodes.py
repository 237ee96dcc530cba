"""The node: `/nodes`. There is one, and this server is it."""

from __future__ import annotations

import asyncio
import os
import resource
import time
from pathlib import Path
from typing import Any, Final

from starlette.responses import Response

from ....core import VERSION
from ....core.errors import not_found
from ....core.histogram import Histogram
from ....core.proto.server_properties import MECHANISMS
from ....core.server import machine
from ...documents import server
from ...overview.node_figures import node_figures
from .call import Call, answer
from .kept_samples import NODE_STATISTICS, node_details
from .message_stats import CHURN_NAMES, message_stats
from .overview import contexts, described_exchange_types
from .required_tags import MONITORING
from .route import Operation, Routes

QUERY: Final = (f"{NODE_STATISTICS}_age", f"{NODE_STATISTICS}_incr")
_DESCRIPTORS: Final = Path("/proc/self/fd")
TASKS_TOTAL: Final = 1_048_576
"""As many as RabbitMQ has processes; there is no limit here."""
FEATURES: Final = (
    "consistent_hash_exchange", "delayed_message_exchange", "management", "management_agent",
    "message_deduplication", "random_exchange", "recent_history_exchange", "web_amqp",
)  # fmt: skip
"""Plugins of RabbitMQ whose features are built in. No shovel and no federation link runs here,
though their parameters are kept, and their paths answered."""
_NO_PARTS: Final = (
    "connection_readers", "connection_writers", "connection_channels", "queue_procs",
    "queue_slave_procs", "quorum_queue_dlx_procs",
    "quorum_queue_procs", "stream_queue_procs", "stream_queue_replica_reader_procs",
    "stream_queue_coordinator_procs", "plugins", "metadata_store", "metadata_store_ets",
    "other_proc", "metrics", "mgmt_db", "mnesia", "quorum_ets", "other_ets", "code", "atom",
    "allocated_unused", "reserved_unallocated",
)  # fmt: skip
"""Parts of RabbitMQ's memory that are not told apart here; rabbitmqadmin v2 reads all or none."""


async def list_nodes(call: Call) -> Response:
    """Describes this server, the only node, in a list."""
    return answer([await _described(call)])


async def get_node(call: Call) -> Response:
    """Describes this server; `memory=true` adds its memory by part."""
    _check_name(call)
    found = await _described(call)
    if call.request.query_params.get("memory") == "true":
        found |= await asyncio.to_thread(_memory, call)
    return answer(found)


async def get_memory(call: Call) -> Response:
    """Returns the memory by part, in bytes."""
    _check_name(call)
    return answer(await asyncio.to_thread(_memory, call))


def _check_name(call: Call) -> None:
    node = call.context.node.name
    if call.names[0] != node:
        raise not_found(f"no node '{call.names[0]}', there is '{node}'")


async def _described(call: Call) -> dict[str, Any]:
    broker, node = call.broker, call.context.node
    alarms = broker.alarms
    descriptors, disk, rss_bytes = await asyncio.to_thread(_measured, node.directory)
    descriptors_max = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return {
        "name": node.name,
        "type": "disc",
        "running": True,
        "being_drained": False,
        "partitions": [],
        "cluster_links": [],
        "os_pid": str(os.getpid()),
        "uptime": int((time.time() - node.started_s) * 1000),
        "run_queue": len(broker.active),
        "processors": os.cpu_count() or 1,
        "rates_mode": "basic",
        "fd_used": descriptors,
        "fd_total": descriptors_max,
        "sockets_total": descriptors_max,
        "proc_used": len(asyncio.all_tasks()),
        "proc_total": TASKS_TOTAL,
        "mem_limit": alarms.bounds.memory,
        "mem_alarm": alarms.memory,
        "mem_calculation_strategy": "rss",
        "disk_free_limit": alarms.bounds.disk_free,
        "disk_free_alarm": alarms.disk,
        "net_ticktime": 60,
        "db_dir": str(node.directory),
        "log_files": ["<stderr>"],
        "config_files": [],
        "enabled_plugins": [f"rabbitmq_{name}" for name in FEATURES],
        "applications": [{"name": "warren", "description": "Warren", "version": VERSION}],
        "exchange_types": list(described_exchange_types()),
        "auth_mechanisms": [
            {"name": name, "description": f"SASL {name}", "enabled": True}
            for name in MECHANISMS.split()
        ],
        "contexts": contexts(call),
        "io_sync_avg_time": _average_ms(broker.store.write_metrics.sync_s),
        **node_figures(broker),
        "mem_used": rss_bytes,
        "disk_free": disk,
        **node_details(call),
        **message_stats(broker, broker.statistics.churn, CHURN_NAMES),
    }


def _average_ms(observed: Histogram) -> float:
    count = observed.cumulative()[-1]
    return observed.sum * 1000 / count if count else 0.0


def _measured(directory: Path) -> tuple[int, int, int]:
    """Returns open descriptors, free bytes on the disk and resident bytes; 0 where the system does
    not say. Takes a while with many descriptors."""
    try:
        descriptors = len(os.listdir(_DESCRIPTORS))
    except OSError:
        descriptors = 0
    disk = machine.disk(directory)
    return descriptors, 0 if disk is None else disk.free_bytes, machine.rss_bytes() or 0


def _memory(call: Call) -> dict[str, Any]:
    """Returns the use of memory. `binary` is what messages take, `msg_index` the cache of records,
    `connection_other` buffers, connections and queues, `other_system` all that is not accounted;
    the others are 0."""
    broker = call.broker
    rss_bytes, accounted = machine.rss_bytes() or 0, broker.alarms.used_bytes
    messages, cache = broker.memory.resident_bytes, broker.store.cache.size_bytes
    return {
        "memory": {
            **dict.fromkeys(_NO_PARTS, 0),
            "binary": messages,
            "msg_index": cache,
            "connection_other": accounted - messages - cache,
            "other_system": max(0, rss_bytes - accounted),
            "strategy": "rss",
            "total": {"rss": rss_bytes, "allocated": rss_bytes, "erlang": accounted},
        }
    }


ROUTES: Routes = {
    "/nodes": {"GET": Operation(list_nodes, MONITORING, {200: list[server.Node]}, query=QUERY)},
    "/nodes/{node}": {
        "GET": Operation(get_node, MONITORING, {200: server.Node}, query=("memory", *QUERY))
    },
    "/nodes/{node}/memory": {"GET": Operation(get_memory, MONITORING, {200: server.NodeMemory})},
}
