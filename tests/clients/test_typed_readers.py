"""Typed readers such as rabbitmqadmin v2's fail on a field that is missing or of another type: the
lists have every field that it demands (specification of the management API, section 3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pika
import pytest

from tests.support.server import WarrenServer

from .management import GUEST

NAMED = {"name": str, "vhost": str}
DECLARED = {**NAMED, "type": str, "durable": bool, "auto_delete": bool, "arguments": dict}
PEER = {"name": str, "peer_host": str, "peer_port": int}
CHURN = (
    "connection_created", "connection_closed", "channel_created", "channel_closed",
    "queue_declared", "queue_created", "queue_deleted",
)  # fmt: skip
FIELDS: dict[str, dict[str, Any]] = {
    "/overview": {
        **dict.fromkeys(
            (
                "product_version", "product_name", "rabbitmq_version", "cluster_name",
                "erlang_version", "erlang_full_version", "node",
            ),
            str,
        ),
        "statistics_db_event_queue": int,
        "message_stats": {"publish_details": {"rate": float}},
        "churn_rates": dict.fromkeys(CHURN, int),
        "queue_totals": {
            "messages": int, "messages_ready": int, "messages_unacknowledged": int,
            "messages_details": {"rate": float},
        },
        "object_totals": dict.fromkeys(
            ("connections", "channels", "queues", "exchanges", "consumers"), int
        ),
        "listeners": {"node": str, "protocol": str, "ip_address": str, "port": int},
    },
    "/nodes": {
        **dict.fromkeys(
            ("uptime", "run_queue", "processors", "fd_total", "proc_total", "mem_limit"), int
        ),
        "name": str, "os_pid": str, "mem_alarm": bool, "disk_free_limit": int,
        "disk_free_alarm": bool, "rates_mode": str, "enabled_plugins": list, "being_drained": bool,
        "applications": {"name": str, "description": str, "version": str},
    },
    "/queues": {**DECLARED, "exclusive": bool, "messages": int, "memory": int, "state": str},
    "/exchanges": DECLARED,
    "/bindings": {
        "vhost": str, "source": str, "destination": str, "destination_type": str,
        "routing_key": str, "arguments": dict, "properties_key": str,
    },
    "/connections": {
        "name": str, "node": str, "protocol": str, "user": str, "connected_at": int,
        "client_properties": dict, "channels": int, "channel_max": int, "state": str,
    },
    "/channels": {
        **NAMED, "number": int, "state": str, "consumer_count": int, "confirm": bool,
        "prefetch_count": int, "messages_unacknowledged": int, "messages_unconfirmed": int,
        "connection_details": PEER,
    },
    "/consumers": {
        "consumer_tag": str, "active": bool, "ack_required": bool, "prefetch_count": int,
        "exclusive": bool, "arguments": dict, "consumer_timeout": int, "queue": NAMED,
        "channel_details": {
            **PEER, "number": int, "connection_name": str, "node": str, "user": str,
        },
    },
    "/vhosts": {"name": str, "description": str, "tags": list, "metadata": dict},
    "/users": {"name": str, "password_hash": str, "tags": list},
    "/permissions": dict.fromkeys(("user", "vhost", "configure", "write", "read"), str),
    "/topic-permissions": dict.fromkeys(("user", "vhost", "exchange", "write", "read"), str),
    "/policies": {
        **NAMED, "pattern": str, "apply-to": str, "definition": dict, "priority": int,
    },
    "/operator-policies": {
        **NAMED, "pattern": str, "apply-to": str, "definition": dict, "priority": int,
    },
    "/parameters": {**NAMED, "component": str, "value": dict},
    "/vhost-limits": {"vhost": str, "value": dict},
    "/user-limits": {"user": str, "value": dict},
    "/feature-flags": dict.fromkeys(
        ("name", "state", "desc", "doc_url", "stability", "provided_by"), str
    ),
}  # fmt: skip
"""The fields of each item by the path of its list, with types."""
WITHOUT_PAGES = {"/overview", "/nodes", "/feature-flags"}
POLICY = {"pattern": "^x", "definition": {"max-length": 5}}
MADE: dict[str, dict[str, Any]] = {
    "/policies/%2F/p": POLICY,
    "/operator-policies/%2F/o": POLICY,
    "/vhost-limits/%2F/max-queues": {"value": 5},
    "/user-limits/guest/max-channels": {"value": 50},
    "/topic-permissions/%2F/guest": {"exchange": "amq.topic", "write": ".*", "read": ".*"},
}


@pytest.fixture(scope="module")
def http(warren: WarrenServer) -> Iterator[httpx.Client]:
    """A client of a server that has at least one object of each kind."""
    parameters = pika.URLParameters(warren.amqp_url)
    with (
        httpx.Client(base_url=f"{warren.http_url}/api", auth=GUEST) as http,
        pika.BlockingConnection(parameters) as connection,
    ):
        for path, body in MADE.items():
            http.put(path, json=body).raise_for_status()
        channel = connection.channel()
        channel.queue_declare("typed", durable=True)
        channel.basic_consume("typed", lambda *_: None)
        yield http


@pytest.mark.parametrize("path", FIELDS)
def test_all_fields_of_all_items(http: httpx.Client, path: str) -> None:
    found = http.get(path).raise_for_status().json()
    assert found
    assert _wrong(found, FIELDS[path]) == []


@pytest.mark.parametrize("path", sorted(FIELDS.keys() - WITHOUT_PAGES))
def test_all_fields_of_all_items_of_pages(http: httpx.Client, path: str) -> None:
    query = {"page": 1, "page_size": 500}
    page = http.get(path, params=query).raise_for_status().json()
    counts = dict.fromkeys(("filtered_count", "item_count", "page", "page_count", "page_size"), int)
    assert _wrong(page, {**counts, "total_count": int, "items": FIELDS[path]}) == []


def _wrong(found: Any, wanted: Any, place: str = "") -> list[str]:
    """The places where something is missing or of another type."""
    if isinstance(found, list) and isinstance(wanted, dict):
        return [wrong for one in found for wrong in _wrong(one, wanted, f"{place}[]")]
    if isinstance(wanted, dict):
        return [
            wrong
            for name, kind in wanted.items()
            for wrong in _wrong(found.get(name), kind, f"{place}.{name}")
        ]
    is_right = type(found) is wanted or (wanted is float and type(found) is int)
    return [] if is_right else [f"{place}: {found!r} is no {wanted.__name__}"]
