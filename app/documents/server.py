"""The JSON documents in responses that describe the server, with RabbitMQ's keys."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from .common import Table


class ExchangeType(TypedDict):
    name: str
    description: str
    enabled: bool


class Listener(TypedDict):
    node: str
    protocol: str
    ip_address: str
    port: int
    socket_opts: Table


class Context(TypedDict):
    """A listener of the management API."""

    node: str
    description: str
    path: str
    ip: str
    port: str
    ssl: bool


class Sample(TypedDict):
    """A sample of a chart. `timestamp` is in milliseconds since 1970."""

    sample: int
    timestamp: int


class Details(TypedDict):
    """A rate in events a second, and samples if they were asked for, newest first."""

    rate: float
    samples: NotRequired[list[Sample]]
    avg: NotRequired[float]
    avg_rate: NotRequired[float]


Numbers = dict[str, int | Details]
"""Each number, and its `_details`."""


class Churn(TypedDict):
    connection_created: int
    connection_created_details: Details
    connection_closed: int
    connection_closed_details: Details
    channel_created: int
    channel_created_details: Details
    channel_closed: int
    channel_closed_details: Details
    queue_declared: int
    queue_declared_details: Details
    queue_created: int
    queue_created_details: Details
    queue_deleted: int
    queue_deleted_details: Details


class ObjectTotals(TypedDict):
    channels: int
    connections: int
    consumers: int
    exchanges: int
    queues: int


class Overview(TypedDict):
    management_version: str
    rates_mode: Literal["basic"]
    sample_retention_policies: dict[str, list[int]]
    exchange_types: list[ExchangeType]
    product_version: str
    product_name: str
    rabbitmq_version: str
    cluster_name: str
    erlang_version: str
    erlang_full_version: str
    release_series_support_status: str
    disable_stats: bool
    enable_queue_totals: bool
    default_queue_type: str
    message_stats: Numbers
    churn_rates: Churn
    queue_totals: Numbers
    object_totals: ObjectTotals
    statistics_db_event_queue: int
    node: str
    listeners: list[Listener]
    contexts: list[Context]


class Application(TypedDict):
    name: str
    description: str
    version: str


class Node(Churn):
    name: str
    type: Literal["disc"]
    running: bool
    being_drained: bool
    partitions: list[str]
    cluster_links: list[str]
    os_pid: str
    uptime: int
    run_queue: int
    processors: int
    rates_mode: Literal["basic"]
    fd_used: int
    fd_total: int
    sockets_used: int
    sockets_total: int
    proc_used: int
    proc_total: int
    mem_used: int
    mem_limit: int
    mem_alarm: bool
    mem_calculation_strategy: str
    disk_free: int
    disk_free_limit: int
    disk_free_alarm: bool
    net_ticktime: int
    db_dir: str
    log_files: list[str]
    config_files: list[str]
    enabled_plugins: list[str]
    applications: list[Application]
    exchange_types: list[ExchangeType]
    auth_mechanisms: list[ExchangeType]
    contexts: list[Context]
    memory: NotRequired[Memory]
    io_sync_count: int
    io_sync_count_details: Details
    io_sync_avg_time: float
    io_write_count: int
    io_write_count_details: Details
    io_write_bytes: int
    io_write_bytes_details: Details
    mem_used_details: Details
    disk_free_details: Details
    sockets_used_details: Details


class MemoryTotal(TypedDict):
    rss: int
    allocated: int
    erlang: int


class OtherMemory(TypedDict):
    """Parts of RabbitMQ's memory that are not told apart here, so 0."""

    connection_readers: int
    connection_writers: int
    connection_channels: int
    queue_procs: int
    queue_slave_procs: int
    quorum_queue_dlx_procs: int
    quorum_queue_procs: int
    stream_queue_procs: int
    stream_queue_replica_reader_procs: int
    stream_queue_coordinator_procs: int
    plugins: int
    metadata_store: int
    metadata_store_ets: int
    other_proc: int
    metrics: int
    mgmt_db: int
    mnesia: int
    quorum_ets: int
    other_ets: int
    code: int
    atom: int
    allocated_unused: int
    reserved_unallocated: int


class Memory(OtherMemory):
    """The use of memory, in bytes."""

    binary: int
    msg_index: int
    connection_other: int
    other_system: int
    strategy: str
    total: MemoryTotal


class NodeMemory(TypedDict):
    memory: Memory


class ClusterName(TypedDict):
    name: str


class Version(TypedDict):
    version: str
    warren: str


class AuthSettings(TypedDict):
    oauth_enabled: bool
    enable_uaa: bool


class FeatureFlag(TypedDict):
    name: str
    desc: str
    doc_url: str
    state: Literal["enabled"]
    stability: Literal["stable"]
    provided_by: str


class Attempts(TypedDict):
    protocol: str
    auth_attempts: int
    auth_attempts_succeeded: int
    auth_attempts_failed: int


class Hash(TypedDict):
    ok: str


class Alarm(TypedDict):
    node: str
    resource: Literal["memory", "disk"]


class ExpiringCertificate(TypedDict):
    node: str
    certfile: str
    name: str
    certfile_expires_on: list[str]


class HealthCheck(TypedDict):
    status: Literal["ok", "failed"]
    reason: NotRequired[str]
    alarms: NotRequired[list[Alarm]]
    expired: NotRequired[list[ExpiringCertificate]]
    port: NotRequired[int]
    protocol: NotRequired[str]
    missing: NotRequired[int | str]
    ports: NotRequired[list[int]]
    protocols: NotRequired[list[str]]
    current: NotRequired[int]
    limit: NotRequired[int | str]
    target_cluster_size: NotRequired[int]
    cluster_size: NotRequired[int]
