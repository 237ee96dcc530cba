"""All scenarios, in the order of the table."""

from __future__ import annotations

from importlib import import_module

from ..scenario import Scenario

MODULES = (
    "throughput", "latency", "honest", "consistent_hash", "confirm", "durable", "transactions",
    "pika_clients", "client_library", "fairness", "http", "webhook", "webhook_scale", "tunnel",
    "stream", "backlog", "long_queues", "stored_once", "restart", "cold_queues", "start_queues",
    "scale", "amqp_read", "spark_read", "spark_restart", "spark_publish", "spark_jobs",
    "spark_batches", "spark_live", "feeds_parse", "feeds_poll", "feeds_push", "documents",
    "metrics", "ui", "ui_lists",
)  # fmt: skip
ALL: tuple[Scenario, ...] = tuple(
    scenario for module in MODULES for scenario in import_module(f".{module}", __name__).SCENARIOS
)
