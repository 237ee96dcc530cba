"""All scenarios, in the order of the table."""

from __future__ import annotations

from ..scenario import Scenario
from . import (
    backlog,
    cold_queues,
    confirm,
    consistent_hash,
    disk_size,
    durable,
    fairness,
    honest,
    http,
    latency,
    long_queues,
    pika_clients,
    restart,
    scale,
    start_queues,
    stored_once,
    throughput,
    transactions,
    unconfirmed,
    webhook,
    webhook_scale,
)

ALL: tuple[Scenario, ...] = (
    *throughput.SCENARIOS,
    *latency.SCENARIOS,
    *honest.SCENARIOS,
    *consistent_hash.SCENARIOS,
    *confirm.SCENARIOS,
    *unconfirmed.SCENARIOS,
    *durable.SCENARIOS,
    *transactions.SCENARIOS,
    *pika_clients.SCENARIOS,
    *fairness.SCENARIOS,
    *http.SCENARIOS,
    *webhook.SCENARIOS,
    *webhook_scale.SCENARIOS,
    *backlog.SCENARIOS,
    *long_queues.SCENARIOS,
    *stored_once.SCENARIOS,
    *disk_size.SCENARIOS,
    *restart.SCENARIOS,
    *cold_queues.SCENARIOS,
    *start_queues.SCENARIOS,
    *scale.SCENARIOS,
)
