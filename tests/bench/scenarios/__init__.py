"""All scenarios, in the order of the table."""

from __future__ import annotations

from ..scenario import Scenario
from . import (
    backlog,
    confirm,
    fairness,
    honest,
    http,
    latency,
    pika_clients,
    scale,
    throughput,
    webhook,
)

ALL: tuple[Scenario, ...] = (
    *throughput.SCENARIOS,
    *backlog.SCENARIOS,
    *latency.SCENARIOS,
    *confirm.SCENARIOS,
    *honest.SCENARIOS,
    *pika_clients.SCENARIOS,
    *fairness.SCENARIOS,
    *http.SCENARIOS,
    *webhook.SCENARIOS,
    *scale.SCENARIOS,
)
