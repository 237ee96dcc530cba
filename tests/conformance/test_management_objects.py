"""RabbitMQ's management answers the same requests with the same shapes, except for what is listed.

Left out here are figures of the Erlang machine, and what Warren does not count for each message.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import httpx
import pika
import pytest
from pika.exceptions import ConnectionClosedByBroker

from tests.support.process import wait_until
from tests.support.rabbitmq import RabbitMQServer
from tests.support.server import WarrenServer

SHOWN_S = 60.0
ERLANG: Final = {"garbage_collection", "reductions", "reductions_details"}
CERTIFICATE: Final = {"peer_cert_issuer", "peer_cert_subject", "peer_cert_validity"}
MISSING: Final[dict[str, set[str]]] = {
    "/queues/%2F": ERLANG | {
        # How a queue is built inside, and what each message would have to be asked for.
        "backing_queue_status", "recoverable_slaves", "head_message_timestamp",
        "message_bytes_paged_out",
        # Here it comes when a queue has been idle for five seconds.
        "idle_since",
    },
    "/connections": ERLANG | CERTIFICATE | {"ssl_hash", "ssl_key_exchange"},
    "/channels": ERLANG | {"idle_since", "pending_raft_commands"},
    "/consumers": set(),
    # Who declared it is not stored.
    "/exchanges/%2F": {"user_who_performed_action"},
    "/bindings/%2F": set(),
}  # fmt: skip
"""Fields of RabbitMQ 3.10 that are missing here, by list."""
ADDED: Final[dict[str, set[str]]] = {
    "/queues/%2F": {
        "message_stats.reject",
        "message_stats.reject_details",
        "oldest_message_age_s",
    },
    "/connections": {"user_provided_name", "recv_cnt_details", "send_cnt_details"},
    "/channels": {"message_stats.reject", "message_stats.reject_details"},
    "/consumers": {"consumer_timeout"},
    "/exchanges/%2F": {"policy", "operator_policy", "effective_policy_definition"},
    "/bindings/%2F": set(),
}
"""Fields that are only here: of later versions of RabbitMQ, of LavinMQ, and of Warren."""


@dataclass
class Management:
    """The management API of a broker with a busy connection."""

    name: str
    http: httpx.Client
    connection: pika.BlockingConnection

    def get(self, path: str) -> Any:
        response = self.http.get(path)
        assert response.status_code == 200, (path, response.text)
        return response.json()


def _busy(url: str) -> pika.BlockingConnection:
    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel = connection.channel()
    channel.exchange_declare("objects-x")
    channel.queue_declare("objects-q", durable=True)
    channel.queue_bind("objects-q", "objects-x", "k")
    channel.confirm_delivery()
    for _ in range(5):
        channel.basic_publish("objects-x", "k", b"abc")
    channel.basic_qos(prefetch_count=2)
    channel.basic_consume("objects-q", lambda *_: None)
    return connection


@pytest.fixture(scope="module", params=["warren", "rabbitmq"])
def management(request: pytest.FixtureRequest) -> Iterator[Management]:
    name: str = request.param
    with _managed(name, request) as found:
        yield found


@pytest.fixture(scope="module")
def own_fields(request: pytest.FixtureRequest) -> dict[str, dict[str, str]]:
    """The fields of an object in each of Warren's lists."""
    with _managed("warren", request) as own:
        return {path: fields(_one(own, path)) for path in MISSING}


@contextmanager
def _managed(name: str, request: pytest.FixtureRequest) -> Iterator[Management]:
    if name == "warren":
        with (
            WarrenServer(dev=True) as server,
            _busy_management(name, server.amqp_url, server.http_port) as own,
        ):
            yield own
        return
    other: RabbitMQServer = request.getfixturevalue("rabbitmq")
    with _busy_management(name, other.amqp_url, other.management_port) as theirs:
        yield theirs


@contextmanager
def _busy_management(name: str, amqp_url: str, http_port: int) -> Iterator[Management]:
    base_url = f"http://127.0.0.1:{http_port}/api"
    with httpx.Client(base_url=base_url, auth=("guest", "guest"), timeout=30) as http:
        connection = _busy(amqp_url)
        found = Management(name, http, connection)
        wait_until(lambda: _is_shown(found), SHOWN_S, "the objects in the lists")
        yield found
        if connection.is_open:
            connection.close()
        for path in ("/queues/%2F/objects-q", "/exchanges/%2F/objects-x"):
            http.delete(path).raise_for_status()


COUNTS: Final = {"messages": 5, "messages_ready": 3, "messages_unacknowledged": 2, "consumers": 1}


def _is_shown(management: Management) -> bool:
    """RabbitMQ shows objects and figures some seconds late, those of one queue at several times."""
    management.connection.process_data_events(0.1)
    queue = _one(management, "/queues/%2F")
    stats = queue.get("message_stats", {})
    is_counted = stats.get("publish", 0) == 5 and "deliver" in stats
    is_alone = len(management.get("/connections")) == 1  # those of tests before are gone
    shown = is_alone and management.get("/channels") and management.get("/consumers")
    return bool(is_counted and queue.items() >= COUNTS.items() and shown)


def fields(document: Any, at: str = "") -> dict[str, str]:
    """The type of each field by its dotted path; tables of clients are no part of the shape."""
    found: dict[str, str] = {}
    for name, value in document.items():
        path = f"{at}{name}"
        found[path] = type(value).__name__
        if isinstance(value, dict) and name not in ("arguments", "client_properties"):
            found |= fields(value, f"{path}.")
    return found


def _one(management: Management, path: str) -> dict[str, Any]:
    items: list[dict[str, Any]] = management.get(path)
    known = ("objects-q", "objects-x")
    named = [one for one in items if one.get("name") in known or one.get("destination") in known]
    return (named or items or [{}])[-1]


@pytest.mark.parametrize("management", ["rabbitmq"], indirect=True)
def test_fields_are_those_of_rabbitmq(
    management: Management, own_fields: dict[str, dict[str, str]]
) -> None:
    deadline = time.monotonic() + SHOWN_S
    for path, own in own_fields.items():
        while differing := _differing(path, own, fields(_one(management, path))):
            assert time.monotonic() < deadline, (path, differing)
            management.connection.process_data_events(0.1)


def _differing(path: str, own: dict[str, str], theirs: dict[str, str]) -> set[str]:
    """The fields of only one of both that are not known to be so, and those of another type."""
    missing = {one for one in theirs.keys() - own.keys() if not _is_in(one, MISSING[path])}
    added = {one for one in own.keys() - theirs.keys() if not _is_in(one, ADDED[path])}
    if "message_stats" not in theirs:
        added = {one for one in added if not one.startswith("message_stats")}
    kinds = {name: {own[name], theirs[name]} - {"NoneType"} for name in own.keys() & theirs.keys()}
    other = {name for name, of in kinds.items() if len(of) > 1 and of != {"int", "float"}}
    return missing | added | other


def _is_in(path: str, known: set[str]) -> bool:
    return any(path == one or path.startswith(one + ".") for one in known)


CALLS: Final[list[tuple[str, str, dict[str, Any] | None, int]]] = [
    ("PUT", "/queues/%2F/new", {"durable": True, "arguments": {}}, 201),
    ("PUT", "/queues/%2F/new", {"durable": "true"}, 204),
    ("PUT", "/queues/%2F/new", {}, 400),
    ("PUT", "/exchanges/%2F/new", {}, 201),
    ("PUT", "/exchanges/%2F/new", {"type": "direct"}, 204),
    ("PUT", "/exchanges/%2F/new", {"type": "topic"}, 400),
    ("PUT", "/exchanges/%2F/other", {"type": "none"}, 400),
    ("POST", "/bindings/%2F/e/new/q/new", {"routing_key": "a/b"}, 201),
    ("POST", "/bindings/%2F/e/new/e/amq.topic", {}, 201),
    ("GET", "/bindings/%2F/e/new/q/new/a%252Fb", None, 200),
    ("GET", "/bindings/%2F/e/new/q/new/~", None, 404),
    ("DELETE", "/bindings/%2F/e/new/e/amq.topic/~", None, 204),
    ("DELETE", "/exchanges/%2F/new?if-unused=true", None, 400),
    ("DELETE", "/queues/%2F/new?if-empty=true&if-unused=true", None, 204),
    ("DELETE", "/exchanges/%2F/new?if-unused=true", None, 204),
    ("DELETE", "/exchanges/%2F/new", None, 404),
    ("DELETE", "/queues/%2F/new", None, 404),
    ("GET", "/queues/%2F?page=2", None, 400),
    ("GET", "/queues/%2F?page=1&page_size=501", None, 400),
    ("GET", "/queues/%2F?page=x", None, 400),
    ("GET", "/queues/%2F?page=1&name=none", None, 200),
    ("GET", "/connections/nothing", None, 404),
    ("GET", "/channels/nothing", None, 404),
    ("GET", "/connections/username/nobody", None, 200),
    ("DELETE", "/connections/username/nobody", None, 204),
]
"""Method, path, body and status."""


def test_the_same_requests_have_the_same_statuses(management: Management) -> None:
    for method, path, body, status in CALLS:
        response = management.http.request(method, path, json=body)
        assert response.status_code == status, (method, path, response.text)
        if status >= 400:
            assert response.json().keys() == {"error", "reason"}


def test_location_of_a_new_binding_resolves(management: Management) -> None:
    path = "/bindings/%2F/e/objects-x/q/objects-q"
    for body in ({"routing_key": "a/b"}, {"arguments": {"n": 1}}):
        response = management.http.post(path, json=body)
        own = response.url.join(response.headers["location"])
        assert management.http.get(own).json().items() >= body.items()
        assert management.http.delete(own).status_code == 204


def test_messages_persistent_counts_persistent_messages(management: Management) -> None:
    channel = management.connection.channel()
    channel.confirm_delivery()
    for durable in (True, False):
        channel.queue_declare(name := f"objects-{durable}", durable=durable)
        for mode in (2, 2, 1, 2):
            channel.basic_publish("", name, b"abc", pika.BasicProperties(delivery_mode=mode))
        channel.basic_get(name, auto_ack=True)

    def shown(name: str) -> tuple[Any, ...]:
        management.connection.process_data_events(0.1)
        found = management.get(f"/queues/%2F/{name}")
        persistent, size = found.get("message_bytes_persistent", 0), found.get("message_bytes", 0)
        assert 0 <= persistent <= size
        return found.get("messages"), found.get("messages_persistent"), persistent > 0

    wait_until(lambda: shown("objects-True") == (3, 2, True), SHOWN_S, "those of a durable queue")
    wait_until(
        lambda: shown("objects-False") == (3, 0, False), SHOWN_S, "those of a transient queue"
    )
    for name in ("objects-True", "objects-False"):
        channel.queue_delete(name)


# -- clients


def test_keda_reads_queue_lengths_and_rates(management: Management) -> None:
    """Its scaler decodes these fields into numbers; missing rates are 0."""
    query = "page=1&use_regex=true&pagination=false&name=%5Eobjects-q%24&page_size=100"
    page = management.get(f"/queues/%2F?{query}")
    assert (page["page_count"], page["filtered_count"]) == (1, 1)
    for queue in (*page["items"], management.get("/queues/%2F/objects-q")):
        assert (queue["name"], queue["messages"], queue["messages_unacknowledged"]) == (
            "objects-q", 5, 2,
        )  # fmt: skip
        stats = queue["message_stats"]
        assert isinstance(stats["publish_details"]["rate"], float | int)
        assert isinstance(stats["deliver_get_details"]["rate"], float | int)


def test_flower_reads_queue_counts(management: Management) -> None:
    queue = next(one for one in management.get("/queues/%2F") if one["name"] == "objects-q")
    assert queue.items() >= COUNTS.items()


TYPED: Final[dict[str, dict[str, Any]]] = {
    "/queues": {
        "name": str, "vhost": str, "type": str, "durable": bool, "auto_delete": bool,
        "exclusive": bool, "arguments": dict,
    },
    "/exchanges": {
        "name": str, "vhost": str, "type": str, "durable": bool, "auto_delete": bool,
        "arguments": dict,
    },
    "/connections": {
        "name": str, "node": str, "protocol": str, "user": str, "connected_at": int,
        "client_properties": dict,
    },
    "/consumers": {
        "consumer_tag": str, "active": bool, "ack_required": bool, "prefetch_count": int,
        "exclusive": bool, "arguments": dict, "queue": {"name": str, "vhost": str},
        "channel_details": {
            "name": str, "number": int, "connection_name": str, "node": str, "peer_host": str,
            "peer_port": int, "user": str,
        },
    },
}  # fmt: skip
"""What the typed clients of later versions refuse to be without."""


def _read(document: dict[str, Any], wanted: dict[str, Any]) -> None:
    for name, kind in wanted.items():
        if isinstance(kind, dict):
            _read(document[name], kind)
        else:
            assert type(document[name]) is kind, (name, document[name])


@pytest.mark.parametrize("path", TYPED)
def test_typed_clients_can_read_every_list(management: Management, path: str) -> None:
    # RabbitMQ 3.10 has no pages of consumers, and drops more than figures with `disable_stats`.
    others = ("?page=1&page_size=100", "?disable_stats=true")
    for query in ("", *others) if management.name == "warren" else ("",):
        found = management.get(path + query)
        for document in found["items"] if "page=" in query else found:
            _read(document, TYPED[path])


def test_a_connection_is_closed_with_the_reason_given(management: Management) -> None:
    """The last one: nothing is left to be shown."""
    (name,) = {one["name"] for one in management.get("/connections")}
    path = f"/connections/{quote(name, safe='')}"
    response = management.http.delete(path, headers={"X-Reason": "maintenance"})
    assert response.status_code == 204
    with pytest.raises(ConnectionClosedByBroker) as closed:
        management.connection.process_data_events(SHOWN_S)
    assert closed.value.args == (320, "CONNECTION_FORCED - maintenance")
