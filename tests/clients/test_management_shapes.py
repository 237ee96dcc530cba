"""The management API beside that of RabbitMQ 3.10: the same requests have the same statuses, and
documents of the same shape; what differs is listed with the reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import Any, NamedTuple

import httpx
import pika
import pytest

from tests.support.process import wait_until
from tests.support.rabbitmq import RabbitMQServer
from tests.support.server import WarrenServer

from .management import GUEST

MESSAGE = {"properties": {}, "routing_key": "shape", "payload": "x", "payload_encoding": "string"}
UPSTREAM = {"value": {"uri": "amqp://localhost"}}
NO_PLUGIN = {"status": "RabbitMQ has it with the plugin only"}
QUEUE = {"name": "shape", "vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}
LATE_S = 15.0
"""RabbitMQ counts every five seconds."""
GET = {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}


class Request(NamedTuple):
    """A request; `differs` has the paths of what differs, with the reason, "status" among them."""

    method: str
    path: str
    body: Any = None
    differs: Mapping[str, str] = MappingProxyType({})


NODE = {
    "exchange_types[].internal_purpose": "of plugins", "contexts[].cowboy_opts": "of its server",
    "contexts[].ssl_opts": "the same", "contexts[].protocol": "of a plugin",
    "config_files[]": "none has to be",
    "cluster_links[]": "rabbitmqctl is one for as long as it runs",
    "ra_open_file_metrics": "there is no Raft", "metrics_gc_queue_length": "nor such a queue",
    "gc_num": "the garbage collector is Python's", "gc_bytes_reclaimed": "as above",
    "context_switches": "not counted", "io_": "not counted",
    "mnesia_": "there is no Mnesia", "msg_store_": "one log for all queues", "queue_index_": "same",
    "mem_used_details": "only counters have rates", "fd_used_details": "same",
    "sockets_used_details": "same", "proc_used_details": "same", "disk_free_details": "same",
    "being_drained": "newer than 3.10",
}  # fmt: skip
OVERVIEW = {
    "exchange_types[].internal_purpose": "of plugins", "contexts[].cowboy_opts": "of its server",
    "contexts[].ssl_opts": "the same", "contexts[].protocol": "of a plugin",
    "listeners[].socket_opts": "Erlang's",
    "message_stats.disk_": "not counted", "message_stats.reject": "LavinMQ's",
    "default_queue_type": "newer than 3.10",
    "sample_retention_policies": "other times",
}  # fmt: skip
EMPTY_LIMITS = {"parameters[]": "RabbitMQ keeps an empty list of limits when all were removed"}
EVERYWHERE = {
    "garbage_collection": "objects are no processes of their own",
    "user_who_performed_action": "the audit log has it",
    "reductions": "Erlang's measure of work",
    "pending_raft_commands": "there is no Raft",
    "peer_cert_": "RabbitMQ has null without TLS", "ssl_": "the same",
    "idle_since": "only of what is idle, when RabbitMQ has noticed it",
    # RabbitMQ tells these of a queue when it has measured it.
    "backing_queue_status": "how a queue is built inside", "recoverable_slaves": "the same",
    "head_message_timestamp": "each message would have to be asked",
    "message_bytes_paged_out": "the same",
}  # fmt: skip
"""Keys that are nowhere in Warren's documents, and why."""
REQUESTS = (
    Request("POST", "/definitions", {"queues": [QUEUE]}),
    Request("POST", "/exchanges/%2F/amq.default/publish", MESSAGE),
    Request("POST", "/exchanges/%2F/amq.default/publish", {}),
    Request("POST", "/exchanges/%2F/none/publish", MESSAGE, {"status": "RabbitMQ says 400"}),
    Request("POST", "/queues/%2F/shape/get", GET, {"[].properties": "RabbitMQ has [] for {}"}),
    Request("POST", "/queues/%2F/shape/get", {"count": 1}),
    Request("POST", "/queues/%2F/none/get", GET),
    Request("POST", "/queues/%2F/shape/actions", {"action": "sync"}),
    Request("DELETE", "/queues/%2F/shape/contents"),
    Request("DELETE", "/queues/%2F/none/contents"),
    Request("PUT", "/parameters/federation-upstream/%2F/up", UPSTREAM),
    Request("PUT", "/parameters/shovel/none/move", UPSTREAM),
    Request("PUT", "/parameters/policy/%2F/up", UPSTREAM),
    Request("GET", "/parameters/federation-upstream/%2F"),
    Request("GET", "/parameters"),
    Request("GET", "/parameters/nothing"),
    Request("GET", "/parameters/federation-upstream/%2F/none"),
    Request("PUT", "/parameters/federation-upstream/%2F/up", {}),
    Request("DELETE", "/parameters/federation-upstream/%2F/up"),
    Request("PUT", "/global-parameters/shape", {"value": [1, {"a": None}]}),
    Request("GET", "/global-parameters/shape"),
    Request("DELETE", "/global-parameters/shape"),
    Request("GET", "/global-parameters/shape"),
    Request("PUT", "/vhost-limits/%2F/max-queues", {"value": 1000}, {"status": "201 as it is new"}),
    Request("PUT", "/vhost-limits/%2F/max-queues", {"value": 900}),
    Request("GET", "/vhost-limits"),
    Request("DELETE", "/vhost-limits/%2F/max-queues"),
    Request("GET", "/vhosts/", None, {
        "[].cluster_state.": "each has its own node", "[].recv_oct": "counted by connection",
        "[].send_oct": "same",
    }),
    Request("GET", "/users/"),
    Request("GET", "/permissions/"),
    Request("GET", "/cluster-name/"),
    Request("PUT", "/feature-flags/none/enable", {}, {"status": "RabbitMQ says 400"}),
    Request("PUT", "/policies/%2F/bad", {"pattern": "(", "definition": {"max-length": 1}}),
    Request("PUT", "/cluster-name", {"name": "ours"}),
    Request("GET", "/cluster-name"),
    Request("PUT", "/cluster-name", {}),
    Request("GET", "/extensions", None, {"[]": "there are no plugins"}),
    Request("GET", "/whoami"),
    Request("GET", "/auth", None, {"": "names of RabbitMQ 4 beside those of 3.10"}),
    Request("GET", "/overview", None, OVERVIEW),
    Request("GET", "/nodes/{node}", None, NODE),
    Request("GET", "/nodes/{node}/memory"),
    Request("GET", "/aliveness-test/%2F"),
    Request("GET", "/aliveness-test/none"),
    Request("GET", "/feature-flags"),
    Request("PUT", "/feature-flags/quorum_queue/enable", {}),
    Request("GET", "/auth/attempts/{node}", None, {"[]": "RabbitMQ has counted HTTP alone"}),
    Request("POST", "/rebalance/queues", {}),
    Request("DELETE", "/reset"),
    Request("GET", "/definitions", None, EMPTY_LIMITS),
    Request("GET", "/definitions/%2F", None, {
        "rabbitmq_version": "as in the whole document", "product_": "same", **EMPTY_LIMITS,
    }),
    Request("GET", "/shovels", None, NO_PLUGIN),
    Request("GET", "/federation-links/%2F", None, NO_PLUGIN),
    Request("POST", "/users/bulk-delete", {"users": ["nobody"]}, {
        "status": "404 tells that it does not exist",
    }),
    Request("GET", "/healthchecks/node"),
    Request("GET", "/health/checks/alarms"),
    Request("GET", "/health/checks/local-alarms"),
    Request("GET", "/health/checks/certificate-expiration/1/months"),
    Request("GET", "/health/checks/certificate-expiration/1/decades"),
    Request("GET", "/health/checks/port-listener/{port}"),
    Request("GET", "/health/checks/port-listener/1"),
    Request("GET", "/health/checks/port-listener/x"),
    Request("GET", "/health/checks/protocol-listener/amqp091"),
    Request("GET", "/health/checks/protocol-listener/mqtt"),
    Request("GET", "/health/checks/virtual-hosts"),
    Request("GET", "/health/checks/node-is-quorum-critical"),
    Request("GET", "/health/checks/node-is-mirror-sync-critical"),
    Request("GET", "/vhosts/%2F", None, {
        "cluster_state.": "each has its own node", "recv_oct": "counted by connection",
        "send_oct": "same",
    }),
    Request("GET", "/queues/%2F/watched"),
    Request("GET", "/queues/%2F"),
    Request("GET", "/queues?page=1&page_size=5&sort=name&columns=name,messages"),
    Request("GET", "/queues?page=9"),
    Request("GET", "/queues?page_size=501&page=1"),
    Request("GET", "/queues/%2F/watched/bindings"),
    Request("PUT", "/queues/%2F/shape2", {"durable": True}),
    Request("PUT", "/queues/%2F/shape2", {"durable": True}),
    Request("PUT", "/queues/%2F/shape2", {"durable": False}),
    Request("DELETE", "/queues/%2F/shape2?if-empty=true"),
    Request("DELETE", "/queues/%2F/shape2"),
    Request("PUT", "/exchanges/%2F/shape", {"type": "topic"}),
    Request("PUT", "/exchanges/%2F/shape", {"type": "fanout"}),
    Request("PUT", "/exchanges/%2F/shape3", {"type": "none"}),
    Request("GET", "/exchanges/%2F/shape"),
    Request("GET", "/exchanges/%2F/amq.default"),
    Request("GET", "/exchanges"),
    Request("POST", "/bindings/%2F/e/shape/q/watched", {"routing_key": "a.b"}),
    Request("GET", "/bindings/%2F/e/shape/q/watched"),
    Request("GET", "/bindings/%2F/e/shape/q/watched/a.b"),
    Request("GET", "/bindings/%2F/e/shape/q/none", None, {"status": "RabbitMQ has [] here"}),
    Request("GET", "/bindings"),
    Request("GET", "/exchanges/%2F/shape/bindings/source"),
    Request("GET", "/exchanges/%2F/shape/bindings/destination"),
    Request("DELETE", "/bindings/%2F/e/shape/q/watched/a.b"),
    Request("DELETE", "/bindings/%2F/e/shape/q/watched/a.b"),
    Request("DELETE", "/exchanges/%2F/shape"),
    Request("DELETE", "/exchanges/%2F/shape"),
    Request("GET", "/connections"),
    Request("GET", "/connections/none"),
    Request("GET", "/vhosts/%2F/connections"),
    Request("GET", "/channels"),
    Request("GET", "/consumers"),
    Request("GET", "/consumers/%2F"),
)  # fmt: skip


class Api:
    """The API of a server; `{node}` and `{port}` in paths are its own."""

    def __init__(self, url: str, amqp_port: int) -> None:
        self._http = httpx.Client(base_url=url + "/api", auth=GUEST, timeout=60)
        self._port = str(amqp_port)
        self._node = self._http.get("/overview").json()["node"]

    def __call__(self, request: Request) -> tuple[int, Any]:
        path = request.path.replace("{node}", self._node).replace("{port}", self._port)
        found = self._http.request(request.method, path, json=request.body)
        return found.status_code, found.json() if found.content else None

    def close(self) -> None:
        self._http.close()


@pytest.fixture(scope="module")
def theirs(rabbitmq: RabbitMQServer) -> Iterator[Api]:
    api = Api(f"http://{rabbitmq.host}:{rabbitmq.management_port}", rabbitmq.port)
    # It measures its node a few seconds after the start.
    wait_until(lambda: "mem_used" in api(Request("GET", "/nodes"))[1][0], 60, "figures")
    # Channels of the tests before are listed for a moment without their connection.
    wait_until(lambda: not api(Request("GET", "/channels"))[1], 60, "the end of others' channels")
    with _watched(api, rabbitmq.host, rabbitmq.port):
        yield api
    api.close()


@pytest.fixture(scope="module")
def ours(warren: WarrenServer) -> Iterator[Api]:
    api = Api(f"http://{warren.host}:{warren.http_port}", warren.amqp_port)
    with _watched(api, warren.host, warren.amqp_port):
        yield api
    api.close()


@contextmanager
def _watched(api: Api, host: str, port: int) -> Iterator[None]:
    """Enters with a client that publishes to and consumes a queue, once the server has counted
    what it does."""
    parameters = pika.ConnectionParameters(host, port, heartbeat=0)
    with pika.BlockingConnection(parameters) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("watched", durable=True)
        channel.basic_consume("watched", lambda *_: None)
        channel.basic_publish("amq.direct", "nowhere", b"x")
        channel.basic_publish("", "watched", b"x")
        queue, consumers = Request("GET", "/queues/%2F/watched"), Request("GET", "/consumers")
        wait_until(lambda: "publish" in api(queue)[1].get("message_stats", {}), 60, "figures")
        # RabbitMQ lists a consumer before it knows the figures of its channel.
        wait_until(
            lambda: all(one["channel_details"] for one in api(consumers)[1]), 60, "its channel"
        )
        yield


@pytest.mark.timeout(300)
def test_answers_have_the_shapes_of_rabbitmq(theirs: Api, ours: Api) -> None:
    found = {request[:2]: _last_differences(theirs, ours, request) for request in REQUESTS}
    assert [(request, one) for request, one in found.items() if one] == []


def _last_differences(theirs: Api, ours: Api, request: Request) -> list[str]:
    """What differs still when RabbitMQ has had the time to count what it shows."""
    differences = _differences(theirs, ours, request)
    if differences and request.method == "GET":
        with suppress(TimeoutError):
            wait_until(lambda: not _differences(theirs, ours, request), LATE_S, "the same shape")
        differences = _differences(theirs, ours, request)
    return differences


def _differences(theirs: Api, ours: Api, request: Request) -> list[str]:
    """What RabbitMQ answers and Warren does not, except what is known to differ."""
    wanted, wanted_document = theirs(request)
    status, document = ours(request)
    if status != wanted:
        return [] if "status" in request.differs else [f"status {status}, not {wanted}: {document}"]
    missing = _shape(wanted_document) - _shape(document)
    known = tuple(one for one in request.differs if one != "status")
    return sorted(
        f"{place}: {kind}"
        for place, kind in missing
        if not place.startswith(known) and not any(key in place for key in EVERYWHERE)
    )


def _shape(document: Any, place: str = "") -> set[tuple[str, str]]:
    """The paths of all values with their types; numbers of both kinds are one type."""
    if isinstance(document, dict):
        parts = [_shape(value, f"{place}.{key}".lstrip(".")) for key, value in document.items()]
        return set().union(*parts) | {(place, "object")}
    if isinstance(document, list):
        return set().union(*(_shape(one, f"{place}[]") for one in document)) | {(place, "list")}
    kind = "number" if type(document) in (int, float) else type(document).__name__
    return {(place, kind)}
