"""Definitions of a running server over HTTP: exported, and added all or none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient

from tests.app.conftest import World
from tests.core.definitions.support import NotingStore, restarted
from warrenmq.core.message.model import Properties

from .support import get, put, refused, tagged

RABBITMQ = Path(__file__).parents[2] / "definitions" / "rabbitmq_3_10_8.json"
QUEUE = {"name": "mail", "vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}
FILE: dict[str, Any] = {
    "users": [{"name": "new", "password": "secret", "tags": "management"}],
    "vhosts": [{"name": "v"}],
    "permissions": [
        {"user": "new", "vhost": "v", "configure": "", "write": ".*", "read": ".*"}
    ],
    "topic_permissions": [
        {"user": "new", "vhost": "v", "exchange": "news", "write": "^eu", "read": ""}
    ],
    "parameters": [
        {"component": "vhost-limits", "vhost": "v", "name": "limits", "value": {"max-queues": 5}},
    ],
    "global_parameters": [{"name": "cluster_name", "value": "ours"}],
    "policies": [
        {
            "vhost": "v", "name": "short", "pattern": "^mail", "apply-to": "queues", "priority": 0,
            "definition": {"max-length": 2},
        }
    ],
    "exchanges": [
        {"name": "news", "vhost": "v", "type": "topic", "durable": True, "auto_delete": False,
         "internal": False, "arguments": {}},
    ],
    "queues": [{**QUEUE, "vhost": "v"}, {**QUEUE, "vhost": "v", "name": "now", "durable": False}],
    "bindings": [
        {"source": "news", "vhost": "v", "destination": one, "destination_type": "queue",
         "routing_key": "eu.#", "arguments": {}}
        for one in ("mail", "now")
    ],
}  # fmt: skip


@pytest.fixture(autouse=True)
def _stored_vhosts(world: World) -> None:
    for vhost in world.broker.vhosts.values():
        vhost.storage.save_vhost()


async def post(http: AsyncClient, document: Any, path: str = "/definitions") -> int:
    response = await http.post("/api" + path, json=document)
    assert response.status_code == 204, response.text
    return response.status_code


async def test_a_document_is_in_force_at_once(world: World, http: AsyncClient) -> None:
    await post(http, FILE)
    async with world.client(auth=("new", "secret")) as new:
        path = "/api/exchanges/v/news/publish"
        for key, status in (("eu.de", 200), ("us", 403)):
            body = {
                "properties": {},
                "routing_key": key,
                "payload": "",
                "payload_encoding": "string",
            }
            assert (await new.post(path, json=body)).status_code == status
    vhost = world.broker.vhosts["v"]
    assert {name: queue.durable for name, queue in vhost.queues.items()} == {
        "mail": True, "now": False,
    }  # fmt: skip
    assert [queue.ready_count for queue in vhost.queues.values()] == [1, 1]
    rules = vhost.queues["mail"].rules
    assert rules is not None
    assert rules.max_length == 2
    assert vhost.limits.as_table() == {"max-queues": 5}
    world.users.set_permissions("guest", "v", "", "", "")
    assert (await get(http, "/cluster-name"))["name"] == "ours"


async def test_an_export_is_added_elsewhere_unchanged(world: World, http: AsyncClient) -> None:
    await post(http, FILE)
    found = await get(http, "/definitions")
    assert [one["name"] for one in found["queues"]] == ["mail"]
    await post(http, found)
    assert await get(http, "/definitions") == found


async def test_added_definitions_are_restored_at_the_next_start(
    world: World, http: AsyncClient
) -> None:
    await post(http, FILE)
    broker, _ = restarted(NotingStore(world.broker.store.definitions))
    assert list(broker.vhosts["v"].queues) == ["mail"]
    assert broker.vhosts["v"].exchanges["news"].type_name == "topic"


async def test_messages_and_other_definitions_stay(world: World, http: AsyncClient) -> None:
    await world.queue("mail")
    await world.queue("other")
    await world.engine.publish(None, "/", "", "mail", Properties(), b"kept")
    await put(http, "/policies/%2F/old", pattern="", definition={"max-length": 9})
    await post(http, {"queues": [QUEUE], "policies": [], "users": []})
    assert world.broker.vhosts["/"].queues.keys() >= {"mail", "other"}
    assert (await world.message("mail")).body == b"kept"
    assert len(await get(http, "/policies")) == 1
    assert world.users.get("tony") is not None


async def test_a_document_of_rabbitmq(world: World, http: AsyncClient) -> None:
    document = json.loads(RABBITMQ.read_text())
    await post(http, document)
    for queue in document["queues"]:
        assert queue["name"] in world.broker.vhosts[queue["vhost"]].queues


async def test_of_one_vhost(world: World, http: AsyncClient) -> None:
    await post(http, FILE)
    await put(http, "/vhosts/v", description="ours", default_queue_type="quorum")
    found = await get(http, "/definitions/v")
    assert found["queues"] == [{key: QUEUE[key] for key in QUEUE if key != "vhost"}]
    assert found.keys().isdisjoint({"users", "vhosts", "permissions"})
    assert [one["component"] for one in found["parameters"]] == ["vhost-limits"]
    await put(http, "/vhosts/copy")
    await post(http, found, "/definitions/copy")
    copied = await get(http, "/definitions/copy")
    named = ("original_vhost_name", "explanation")
    assert {**copied, **{key: found[key] for key in named}} == found
    assert refused(await http.get("/api/definitions/none"), 404)
    assert refused(await http.post("/api/definitions/none", json={}), 404)
    response = await http.post("/api/definitions/copy", json=FILE)
    assert "users: a document of one vhost has none" in refused(response, 400)
    response = await http.post("/api/definitions", json=found)
    assert "of one vhost, 'v': use /api/definitions/VHOST" in refused(response, 400)


async def test_of_one_vhost_of_rabbitmq_4(world: World, http: AsyncClient) -> None:
    await put(http, "/vhosts/copy")
    document = {
        "rabbit_version": "4.2.1", "rabbitmq_version": "4.2.1",
        "product_name": "RabbitMQ", "product_version": "4.2.1",
        "rabbitmq_definition_format": "single_virtual_host", "original_vhost_name": "orders",
        "explanation": "Definitions of virtual host 'orders'",
        "metadata": {"description": "of the shop", "tags": [], "default_queue_type": "quorum"},
        "description": "of the shop", "limits": {"max-queues": 7},
        "parameters": [],
        "policies": [{"name": "grow", "pattern": ".*", "apply-to": "quorum_queues", "priority": 0,
                      "definition": {"target-group-size": 5, "max-length": 9}}],
        "queues": [{"name": "mail", "durable": True, "auto_delete": False, "type": "quorum",
                    "arguments": {"x-queue-type": "quorum"}}],
        "exchanges": [], "bindings": [],
    }  # fmt: skip
    await post(http, document, "/definitions/copy")
    vhost = world.broker.vhosts["copy"]
    assert vhost.properties == {"description": "of the shop", "default_queue_type": "quorum"}
    assert vhost.limits.as_table() == {"max-queues": 7}
    rules = vhost.queues["mail"].rules
    assert rules is not None and rules.max_length == 9


async def test_from_a_form(world: World, http: AsyncClient) -> None:
    files = {"file": ("definitions.json", json.dumps({"queues": [QUEUE]}))}
    assert (await http.post("/api/definitions", files=files)).status_code == 204
    assert "mail" in world.broker.vhosts["/"].queues
    response = await http.post("/api/definitions", files={"other": ("x", "{}")})
    assert "no field 'file'" in refused(response, 400)
    response = await http.post(
        "/api/definitions", files=files, headers={"origin": "http://evil.example"}
    )
    assert response.status_code == 403


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ({"queues": [QUEUE, {**QUEUE, "vhost": "none"}]}, "queues[1]: queue 'mail' in vhost"),
        ({"queues": [QUEUE, {**QUEUE, "name": "old", "durable": False}]},
         "inequivalent arg 'durable'"),
        ({"queues": [QUEUE, {**QUEUE, "name": "old", "arguments": {"x-max-length": 1}}]},
         "inequivalent arg 'x-max-length'"),
        ({"queues": [QUEUE], "exchanges": [{"name": "old", "vhost": "/", "type": "fanout"}]},
         "inequivalent arg 'type'"),
        ({"queues": [QUEUE], "policies": [{"vhost": "/", "name": "p", "pattern": "(",
          "definition": {"max-length": 1}}]}, "policies[0]: policy 'p'"),
        ({"queues": [QUEUE], "users": [{"name": "guest", "password_hash": "", "tags": ""}]},
         "none with the tag administrator would remain"),
        ({"queues": [QUEUE], "parameters": [{"component": "vhost-limits", "vhost": "/",
          "name": "limits", "value": {"max-queues": 1}}]}, "would have 2 queues, its limit is 1"),
        ({"queues": [QUEUE], "shoes": [], "users": 5}, "users: Expected `array`"),
    ],
)  # fmt: skip
async def test_all_or_nothing(
    world: World, http: AsyncClient, document: Any, complaint: str
) -> None:
    await world.queue("old")
    await world.exchange("old", "topic")
    before = await get(http, "/definitions")
    reason = refused(await http.post("/api/definitions", json=document), 400)
    assert complaint in reason
    assert reason.endswith("nothing was changed")
    assert await get(http, "/definitions") == before
    assert "mail" not in world.broker.vhosts["/"].queues


async def test_what_was_left_out_is_listed(http: AsyncClient) -> None:
    queue = {**QUEUE, "arguments": {"x-queue-type": "odd"}}
    plugin = {"component": "lvc", "vhost": "/", "name": "x", "value": 1}
    document = {"queues": [queue], "shoes": [], "parameters": [plugin]}
    response = await http.post("/api/definitions", json=document)
    assert (response.status_code, response.json()) == (200, {"left_out": [
        "shoes: left out: the key is not known",
        "parameters[0]: lvc parameter 'x' in vhost '/': left out: component lvc not found",
        "queues[0]: queue 'mail' in vhost '/': left out: there is no queue type 'odd'",
    ]})  # fmt: skip
    assert await get(http, "/queues/%2F") == []


async def test_only_for_administrators(world: World) -> None:
    async with world.client(auth=tagged(world, "monitoring", "policymaker")) as http:
        for method, path in (("GET", ""), ("POST", ""), ("GET", "/%2F"), ("POST", "/%2F")):
            response = await http.request(method, f"/api/definitions{path}")
            assert "needs the tag 'administrator'" in refused(response, 403)
