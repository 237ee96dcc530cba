"""What Prometheus reads, parsed by its own client's parsers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import httpx
import pika
import pytest
from httpx import AsyncClient
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as read_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families as read_text

from tests.app.conftest import World
from tests.app.support import problem
from tests.support.amqp import Client
from tests.support.http import Callback
from tests.support.ports import free_port
from tests.support.process import wait_until
from tests.support.server import WarrenServer
from warrenmq.app.configuration.types import MetricsReaders
from warrenmq.app.metrics.object_groups import GROUPS
from warrenmq.core.message.model import Properties
from warrenmq.hub.engine.own import DEAD_QUEUE, delay
from warrenmq.hub.errors import StorageFailed
from warrenmq.hub.runs import runs
from warrenmq.hub.runs.run import Run
from warrenmq.hub.service import Hub

GUEST = ("guest", "guest")
PATHS = ("/metrics", "/metrics/per-object", "/metrics/detailed?family=queue_metrics")
GLOBAL = (
    "acknowledged", "confirmed", "dead_lettered_confirmed", "dead_lettered_delivery_limit",
    "dead_lettered_expired", "dead_lettered_maxlen", "dead_lettered_rejected", "delivered",
    "delivered_consume_auto_ack", "delivered_consume_manual_ack", "delivered_get_auto_ack",
    "delivered_get_manual_ack", "get_empty", "received", "received_confirm", "redelivered",
    "routed", "unroutable_dropped", "unroutable_returned",
)  # fmt: skip
OTHERS = (
    "identity_info", "build_info", "connections", "channels", "consumers", "queues",
    "queue_messages", "queue_messages_ready", "queue_messages_unacked", "global_publishers",
    "global_consumers", "connections_opened_total", "connections_closed_total",
    "channels_opened_total", "channels_closed_total", "queues_declared_total",
    "queues_created_total", "queues_deleted_total", "process_resident_memory_bytes",
    "resident_memory_limit_bytes", "disk_space_available_bytes",
    "disk_space_available_limit_bytes", "process_open_fds", "process_max_fds",
    "erlang_uptime_seconds", "message_size_bytes_bucket", "alarms_memory_used_watermark",
    "alarms_free_disk_space_watermark", "auth_attempts_succeeded_total",
    "auth_attempts_failed_total",
)  # fmt: skip
OVERVIEW = {
    *(f"rabbitmq_global_messages_{name}_total" for name in GLOBAL),
    *(f"rabbitmq_{name}" for name in OTHERS),
}
"""The names that the stock overview board for RabbitMQ asks for, and some of its other boards."""

Samples = dict[str, dict[tuple[tuple[str, str], ...], float]]


def samples(text: str, *, is_openmetrics: bool = False) -> Samples:
    """By name and labels; families and samples may come once only."""
    found: Samples = {}
    families = list((read_openmetrics if is_openmetrics else read_text)(text))
    assert len({family.name for family in families}) == len(families)
    for family in families:
        assert family.documentation and family.type != "unknown", family
        for one in family.samples:
            of_name, labels = found.setdefault(one.name, {}), tuple(sorted(one.labels.items()))
            assert labels not in of_name, (one.name, labels)
            of_name[labels] = one.value
    return found


def total(found: Samples, name: str, **labels: str) -> float:
    """The sum of the samples with these labels."""
    return sum(value for key, value in found[name].items() if labels.items() <= dict(key).items())


async def read(http: AsyncClient, path: str) -> Samples:
    response = await http.get(path)
    assert response.status_code == 200, response.text
    return samples(response.text)


@pytest.mark.parametrize("path", PATHS)
async def test_both_formats_are_valid_and_say_the_same(hub: Hub, world: World, path: str) -> None:
    await world.queue("q")
    async with world.client() as http:
        text = await http.get(path)
        accept = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"
        other = await http.get(path, headers={"Accept": accept})
    assert text.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert other.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    names = samples(text.text).keys()
    assert names == samples(other.text, is_openmetrics=True).keys()


async def test_a_board_for_rabbitmq_finds_its_metrics(hub: Hub, http: AsyncClient) -> None:
    assert (await read(http, "/metrics")).keys() >= OVERVIEW


async def test_totals_and_single_queues(hub: Hub, world: World, http: AsyncClient) -> None:
    odd = 'a "q"\\b'
    await world.queue("one")
    await world.queue(odd, vhost="other/one")
    before = await read(http, "/metrics")
    for name in ("one", "one"):
        assert (await http.post(f"/endpoint/q/{name}", content=b"x" * 500)).status_code == 202
    found = await read(http, "/metrics")
    assert found["rabbitmq_queue_messages_ready"] == {(): 2}
    received = "rabbitmq_global_messages_received_total"
    assert total(found, received) - total(before, received) == 2
    sizes = "rabbitmq_message_size_bytes_bucket"
    assert total(found, sizes, le="1000.0") - total(before, sizes, le="100.0") == 2
    single = await read(http, "/metrics/per-object")
    assert total(single, "rabbitmq_queue_messages_ready", vhost="/", queue="one") == 2
    size = total(single, "rabbitmq_queue_messages_bytes", queue="one")
    assert 1_000 < size < 1_500
    assert total(single, "rabbitmq_queue_messages_ready_bytes", queue="one") == size
    assert found["rabbitmq_queue_messages_bytes"] == {(): size}
    assert total(single, "rabbitmq_queue_messages_ready", vhost="other/one", queue=odd) == 0
    assert () not in single["rabbitmq_queue_messages_ready"]


async def test_there_is_a_total_of_all_that_single_objects_have(
    hub: Hub, world: World, http: AsyncClient
) -> None:
    client = Client(world.broker)
    client.call("Queue.Declare", queue="q")
    client.publish(b"x", routing_key="q")
    client.send("Basic.Consume", queue="q")
    found = await read(http, "/metrics")
    names = {f"rabbitmq_{family.name}" for group in GROUPS.values() for family in group.families}
    assert names <= found.keys()
    for name in ("channel_consumers", "channel_messages_unacked", "connection_channels"):
        assert found[f"rabbitmq_{name}"] == {(): 1}
    assert found["rabbitmq_queue_messages_ready_bytes"] == {(): 0}
    assert found["rabbitmq_queue_messages_unacked_bytes"] != {(): 0}
    received = found["rabbitmq_connection_incoming_bytes_total"]
    assert received == found["warren_received_bytes_total"] != {(): 0}


async def test_detailed_has_the_families_and_virtual_hosts_of_the_query(
    hub: Hub, world: World, http: AsyncClient
) -> None:
    await world.queue("one")
    await world.queue("two", vhost="other/one")
    families = "family=queue_coarse_metrics&family=exchange_bindings&family=ra_metrics"
    found = await read(http, f"/metrics/detailed?{families}&vhost=other%2Fone&vhost=none")
    assert found.keys() == {
        "rabbitmq_identity_info", "rabbitmq_build_info", "rabbitmq_cluster_exchange_bindings",
        *(f"rabbitmq_detailed_queue_messages{end}" for end in ("", "_ready", "_unacked")),
    }  # fmt: skip
    queues = found["rabbitmq_detailed_queue_messages"]
    assert [dict(key)["queue"] for key in queues] == ["two"]
    churn = await read(http, "/metrics/detailed?family=connection_churn_metrics")
    assert churn["rabbitmq_detailed_queues_created_total"] == {(): 2}
    assert "rabbitmq_detailed_connections_opened_total" in churn
    detail = problem(await http.get("/metrics/detailed?family=queues"), 400)
    assert "'queues' is unknown; known: queue_coarse_metrics, " in detail


async def test_streams_retries_dead_letters_and_runs_are_counted(
    hub: Hub, world: World, http: AsyncClient
) -> None:
    await world.queue("log", queue_type="stream")
    for queue in (DEAD_QUEUE, delay(60)[1]):
        await world.engine.declare_queue("/", queue)
        await world.engine.publish(None, "/", "", queue.name, Properties(), b"x", queue=queue.name)
    for _ in range(3):
        await http.post("/endpoint/q/log", content=b"x")
    for path, body in (
        ("runs/archive/one", {"state": "running", "lag": 7, "rows": 30}),
        ("runs/archive/two", {"state": "running", "lag": 5, "rows": 4}),
        ("runs/rollup/one", {"state": "failed"}),
        ("archives/%2F/log/cold", {"offset": 1}),
    ):
        assert (await http.put(f"/api/hub/pipeline/{path}", json=body)).status_code == 201
    await hub.tunnels.enrol("ada", None, None, "guest")
    found = await read(http, "/metrics")
    assert found["warren_dead_letters"] == found["warren_retries_waiting"] == {(): 1}
    assert total(found, "warren_pipeline_lag_messages", pipeline="archive") == 7
    assert total(found, "warren_pipeline_rows", pipeline="archive") == 34
    assert total(found, "warren_pipeline_runs", pipeline="archive", state="running") == 2
    assert total(found, "warren_pipeline_runs", pipeline="rollup", state="failed") == 1
    assert total(found, "warren_archive_lag_messages", stream="log", archive="cold") == 2
    assert found["warren_tunnels"] == found["warren_database_up"] == {(): 1}
    assert total(found, "warren_feeds", state="ok") == 0


async def test_a_database_that_does_not_answer_costs_its_own_metrics_only(
    hub: Hub, http: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = asyncio.Event()

    async def hang() -> list[Run]:
        await released.wait()
        raise StorageFailed("database is gone", field="database")

    monkeypatch.setattr(runs, "READ_S", 0.01)
    monkeypatch.setattr(hub.runs, "all", hang)
    for _ in range(2):
        assert (await read(http, "/metrics"))["warren_database_up"] == {(): 0}
    monkeypatch.setattr(runs, "READ_S", 10)
    released.set()
    assert (await read(http, "/metrics"))["warren_database_up"] == {(): 0}
    monkeypatch.undo()
    assert (await read(http, "/metrics"))["warren_database_up"] == {(): 1}


async def test_readers_depend_on_the_setting_metrics_readers(hub: Hub, world: World) -> None:
    world.users.add("watcher", "secret", ("monitoring",))
    away, watcher, tony = "192.0.2.7", ("watcher", "secret"), ("tony", "secret")

    async def status(peer: str, auth: tuple[str, str] | None, readers: MetricsReaders) -> int:
        world.context = replace(world.context, metrics_readers=readers)
        async with world.client(peer=peer, auth=auth) as http:
            return (await http.get("/metrics")).status_code

    assert await status("127.0.0.1", None, "local") == 200
    assert await status(away, None, "local") == 401
    assert await status(away, watcher, "local") == 200
    assert await status(away, tony, "local") == 403
    assert await status("127.0.0.1", None, "users") == 401
    assert await status(away, None, "anyone") == 200


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[WarrenServer, str]]:
    """A server, and the URL of its metrics' own port."""
    port = free_port()
    with WarrenServer(args=["--prometheus-port", str(port)]) as warren:
        yield warren, f"http://127.0.0.1:{port}"


def test_the_port_of_its_own_has_nothing_else(server: tuple[WarrenServer, str]) -> None:
    warren, url = server

    def found() -> Samples:
        return samples(httpx.get(f"{url}/metrics").text)

    def is_measured() -> bool:
        shown = found()
        names = ("warren_event_loop_lag_seconds_count", "warren_log_sync_seconds_count")
        return all(shown[name][()] > 0 for name in names)

    wait_until(is_measured, 10, "the loop's lag and a sync in the metrics")
    assert found().keys() == samples(httpx.get(f"{warren.http_url}/metrics").text).keys()
    problem(httpx.get(f"{url}/api/whoami", auth=GUEST), 404)
    problem(httpx.post(f"{url}/metrics"), 405)


def test_connections_and_channels(server: tuple[WarrenServer, str]) -> None:
    warren, url = server
    connection = pika.BlockingConnection(pika.URLParameters(warren.amqp_url))
    channel = connection.channel()
    channel.confirm_delivery()
    channel.queue_declare("read")
    channel.basic_publish("", "read", b"one")
    assert channel.basic_get("read", auto_ack=True)[2] == b"one"
    found = samples(httpx.get(f"{url}/metrics/per-object").text)
    connection.close()
    assert found["rabbitmq_connections"] == found["rabbitmq_channels"] == {(): 1}
    for name in ("published", "confirmed"):
        assert total(found, f"rabbitmq_channel_messages_{name}_total", vhost="/") == 1
    assert total(found, "rabbitmq_channel_get_total", vhost="/") == 1
    assert total(found, "rabbitmq_connection_channels", vhost="/") == 1
    assert total(found, "rabbitmq_connection_incoming_bytes_total") > 100
    assert total(found, "rabbitmq_global_publishers", protocol="amqp091") == 1
    assert total(found, "rabbitmq_auth_attempts_succeeded_total", protocol="amqp091") == 1


def test_deliveries_are_counted(server: tuple[WarrenServer, str], callback: Callback) -> None:
    warren, url = server
    callback.script(500, 200)
    form = {"hub.mode": "subscribe", "hub.callback": callback.url, "hub.topic": "#"}
    with httpx.Client(base_url=warren.http_url, auth=GUEST, timeout=60) as http:
        assert http.post("/subscribe/x/amq.topic", data=form).status_code == 204
        for _ in range(2):
            assert http.post("/endpoint/x/amq.topic?hub.topic=a").status_code == 202
    callback.wait(3)

    def attempts(**labels: str) -> float:
        found = samples(httpx.get(f"{url}/metrics").text)
        return total(found, "warren_delivery_attempts_total", **labels)

    wait_until(lambda: attempts(outcome="delivered") == 2, 10, "two deliveries are counted")
    assert attempts(outcome="retried", status="5xx") == 1
    found = samples(httpx.get(f"{url}/metrics").text)
    assert total(found, "warren_subscriptions", phase="active") == 1
    assert total(found, "warren_breakers", state="closed") == 1
    assert found["warren_delivery_seconds_count"] == {(): 2}
