"""Queues as documents."""

from __future__ import annotations

from typing import Any

from ....core.clock import wall_ms
from ....core.policy.policies import AppliedPolicies
from ....core.proto.connection import Connection
from ....core.queue.queue import Queue
from ....core.queue.single_active import SingleActiveRing
from ....core.queue.size import message_bytes, persistent_count
from ....core.vhost import VirtualHost
from ...definitions.values import table_to_json
from ...node import Node
from ...responses.times import rfc3339
from .consumer_json import consumer_json, ends_of
from .message_stats import QUEUE_NAMES
from .view import View

IDLE_MS = 5_000
"""A queue is idle after so long without a message, consumer or declaration."""


def queue_json(queue: Queue, vhost: VirtualHost, view: View, node: Node) -> dict[str, Any]:
    """Returns the document of a queue in a list; without statistics if the view has none."""
    found = {
        "name": queue.name,
        "vhost": queue.vhost,
        "type": queue.kind,
        "durable": queue.durable,
        "auto_delete": queue.auto_delete,
        "exclusive": queue.owner is not None,
        "arguments": table_to_json(queue.arguments),
        "node": node.name,
        "state": "paused" if queue.is_paused else "running",
        **policy_fields(vhost.policies.of(queue)),
    }
    if queue.kind != "classic":
        found |= {"leader": node.name, "members": [node.name], "online": [node.name]}
    if view.shows_lengths:
        found |= view.lengths_of(queue)
    if view.shows_all:
        found |= _statistics(queue, view)
        found["oldest_message_age_s"] = oldest_age_s(queue, view)
    return found


def single_queue_json(queue: Queue, vhost: VirtualHost, view: View, node: Node) -> dict[str, Any]:
    """Returns the document of a queue, as `queue_json`, with its consumers."""
    members = tuple(queue.ring.members) if queue.ring is not None else ()
    consumers = [consumer_json(one, view.broker, node) for one in members]
    found = queue_json(queue, vhost, view, node)
    if view.shows_all:
        found |= {"consumer_details": consumers, "incoming": [], "deliveries": []}
    return found


def oldest_age_s(queue: Queue, view: View) -> float | None:
    """Returns the age of the first ready message; None where it is not in memory."""
    arrived_ms = queue.front_arrived_ms
    return None if arrived_ms is None else (view.broker.clock.now_ms() - arrived_ms) / 1_000


def policy_fields(applied: AppliedPolicies | None) -> dict[str, Any]:
    """Returns the names of the policies in force, and what they say together."""
    policy = operator = None
    definition = {}
    if applied is not None:
        policy = applied.policy and applied.policy.record.name
        operator = applied.operator and applied.operator.record.name
        definition = table_to_json(applied.definition)
    return {
        "policy": policy,
        "operator_policy": operator,
        "effective_policy_definition": definition,
    }


def _statistics(queue: Queue, view: View) -> dict[str, Any]:
    ready, unacked = queue.ready_count, queue.unacked_count
    total, paged_out = message_bytes(queue), queue.paged_out_count
    persistent, count = persistent_count(queue, view.broker.store), max(1, ready + unacked)
    ready_bytes = total * ready // count
    in_memory = queue.estimated_bytes
    return {
        "messages_ram": max(0, ready - paged_out) + unacked,
        "messages_ready_ram": max(0, ready - paged_out),
        "messages_unacknowledged_ram": unacked,
        "messages_persistent": persistent,
        "messages_paged_out": paged_out,
        "message_bytes": total,
        "message_bytes_ready": ready_bytes,
        "message_bytes_unacknowledged": total - ready_bytes,
        "message_bytes_persistent": total * persistent // count,
        "message_bytes_ram": in_memory,
        "memory": in_memory,
        **_consumer_fields(queue),
        **_owner(queue),
        **_idle_since(queue, view),
        "message_stats": view.message_stats(queue.counters, QUEUE_NAMES),
    }


def _consumer_fields(queue: Queue) -> dict[str, Any]:
    """Returns what concerns consumers; their capacity is that of this moment."""
    ring, exclusive = queue.ring, queue.exclusive_consumer
    found: dict[str, Any] = {
        "consumers": queue.consumer_count,
        "consumer_capacity": float(queue.has_consumers and queue.has_ready_consumer),
        "exclusive_consumer_tag": None if exclusive is None else exclusive.tag,
        "single_active_consumer_tag": None,
    }
    if isinstance(ring, SingleActiveRing) and ring.active is not None:
        found["single_active_consumer_tag"] = ring.active.tag
    return {**found, "consumer_utilisation": found["consumer_capacity"]}


def _owner(queue: Queue) -> dict[str, Any]:
    if not isinstance(queue.owner, Connection):
        return {}
    name = queue.owner.name
    ends = ends_of(name)
    details = {"name": name, "peer_host": ends.peer_host, "peer_port": ends.peer_port}
    return {"owner_pid_details": details}


def _idle_since(queue: Queue, view: View) -> dict[str, Any]:
    since_ms = idle_since_ms(queue, view)
    if since_ms is None:
        return {}
    clock = view.broker.clock
    return {"idle_since": rfc3339((wall_ms(clock) - clock.now_ms() + since_ms) / 1_000)}


def idle_since_ms(queue: Queue, view: View) -> int | None:
    """Returns when a queue was used last, by the monotonic clock; None unless that is a while
    ago."""
    counters = queue.counters
    used_ms = max(queue.last_used_ms, 0 if counters is None else counters.active_ms)
    return used_ms if view.broker.clock.now_ms() - used_ms >= IDLE_MS else None
