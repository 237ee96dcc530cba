"""The management clients of Python: pyrabbit2 and amqpstorm."""

from __future__ import annotations

import pyrabbit2
import pytest
from amqpstorm.connection import Connection
from amqpstorm.exception import AMQPConnectionError
from amqpstorm.management.api import ManagementApi
from amqpstorm.management.exception import ApiError

from tests.support.process import wait_until
from tests.support.server import WarrenServer

from .management import QUEUE, add_queue
from .support import WAIT_S


def test_pyrabbit2_declares_binds_and_lists(warren: WarrenServer) -> None:
    client = pyrabbit2.Client(f"{warren.host}:{warren.http_port}", "guest", "guest")
    client.create_queue("/", "made", durable=True)
    client.create_exchange("/", "news", "topic", durable=True)
    client.create_binding("/", "news", "made", "eu.#")
    bindings = client.get_queue_bindings("/", "made")
    assert ("news", "eu.#") in [(one["source"], one["routing_key"]) for one in bindings]
    assert client.publish("/", "news", "eu.de", "hello")
    assert client.get_queue_depth("/", "made") == 1
    assert client.get_queue("/", "made")["durable"]
    assert "made" in [one["name"] for one in client.get_queues("/")]
    assert "news" in [one["name"] for one in client.get_exchanges("/")]
    assert client.get_connections() == client.get_channels() == []
    client.create_policy("/", "short", **{"pattern": "^made", "definition": {"max-length": 5}})
    assert client.get_policy("/", "short")["definition"] == {"max-length": 5}
    client.delete_policy("/", "short")
    client.delete_binding("/", "news", "made", "eu.%23")
    client.delete_exchange("/", "news")
    client.delete_queue("/", "made")
    assert "made" not in [one["name"] for one in client.get_queues("/")]


def test_pyrabbit2(warren: WarrenServer) -> None:
    add_queue(warren)
    client = pyrabbit2.Client(f"{warren.host}:{warren.http_port}", "guest", "guest")
    assert client.is_alive()
    assert client.get_overview()["object_totals"]["queues"] >= 1
    assert client.get_cluster_name()["name"] == client.get_nodes()[0]["name"]
    assert client.get_extensions() == []
    assert client.publish("/", "amq.default", QUEUE, "hello")
    assert not client.publish("/", "amq.default", "nowhere", "hello")
    assert [one["payload"] for one in client.get_messages("/", QUEUE)] == ["hello"]
    client.publish("/", "amq.default", QUEUE, "again")
    client.purge_queue("/", QUEUE)
    assert client.get_messages("/", QUEUE) == []
    assert {"queues", "users", "vhosts"} <= client.get_definitions().keys()
    client.create_vhost("made")
    client.set_vhost_permissions("made", "guest", ".*", ".*", ".*")
    assert "made" in client.get_vhost_names()
    with pytest.raises(pyrabbit2.http.HTTPError, match="component shovel not found"):
        client.create_shovel("made", "s", **{"src-uri": "amqp://", "dest-uri": "amqp://"})
    assert client.get_all_shovels() == []
    client.delete_vhost("made")


def test_amqpstorm_declares_binds_and_lists(warren: WarrenServer) -> None:
    api = ManagementApi(f"http://{warren.host}:{warren.http_port}", "guest", "guest")
    api.queue.declare("stormy", durable=True)
    api.exchange.declare("weather", "topic", durable=True)
    api.queue.bind("stormy", "weather", "eu.#")
    assert "eu.#" in [one["routing_key"] for one in api.queue.bindings("stormy")]
    assert api.exchange.get("weather")["type"] == "topic"
    assert "stormy" in [one["name"] for one in api.queue.list(name="storm", show_all=True)]
    connection = Connection(warren.host, "guest", "guest", port=warren.amqp_port)
    (found,) = [one for one in api.connection.list() if one["user"] == "guest"]
    assert api.connection.get(found["name"])["state"] == "running"
    api.connection.close(found["name"], reason="enough")
    wait_until(lambda: connection.is_closed, WAIT_S, "the end of the connection")
    with pytest.raises(AMQPConnectionError, match="enough"):
        connection.check_for_errors()
    api.queue.unbind("stormy", "weather", "eu.#", properties_key="eu.%23")
    api.exchange.delete("weather")
    api.queue.delete("stormy")


def test_amqpstorm(warren: WarrenServer) -> None:
    add_queue(warren)
    api = ManagementApi(f"http://{warren.host}:{warren.http_port}", "guest", "guest")
    assert api.aliveness_test("/") == {"status": "ok"}
    assert api.healthchecks.get() == api.healthchecks.get(api.nodes()[0]["name"])
    assert api.whoami()["name"] == "guest"
    assert api.cluster_name()["name"]
    before = api.overview()["queue_totals"]["messages"]
    assert api.basic.publish("hello", QUEUE, properties={"content_type": "text/plain"})["routed"]
    assert api.overview()["queue_totals"]["messages"] == before + 1
    (message,) = api.basic.get(QUEUE, requeue=True, to_dict=True)
    assert isinstance(message, dict)
    assert message["payload"] == "hello"
    assert message["properties"] == {"content_type": "text/plain"}
    assert len(api.basic.get(QUEUE)) == 1
    api.queue.purge(QUEUE)
    with pytest.raises(ApiError, match="NOT-FOUND"):
        api.basic.get("none")
