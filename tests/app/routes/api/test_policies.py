"""Policies and operator policies over HTTP; what they do is tested in tests/core/policy."""

from __future__ import annotations

from typing import Any

import pytest
from httpx import AsyncClient

from tests.app.conftest import World
from tests.support.amqp import take_turns
from warrenmq.core.queue.rules import Rules

from .support import delete, get, put, refused, tagged

SORTS = ("policies", "operator-policies")
POLICY = {
    "pattern": "^mail", "definition": {"max-length": 2}, "priority": 3, "apply-to": "queues",
}  # fmt: skip


def rules(world: World) -> Rules | None:
    return world.broker.vhosts["/"].queues["mail"].rules


@pytest.mark.parametrize("sort", SORTS)
async def test_made_changed_and_deleted(world: World, http: AsyncClient, sort: str) -> None:
    await world.queue("mail")
    path = f"/{sort}/%2F/short%2Fest"
    whole = {"vhost": "/", "name": "short/est", **POLICY}
    assert refused(await http.get("/api" + path), 404).endswith("'short/est' in vhost '/'")
    assert await put(http, path, **POLICY) == 201
    assert await put(http, path, **POLICY) == 204
    assert await get(http, path) == whole
    assert await get(http, f"/{sort}") == await get(http, f"/{sort}/%2F") == [whole]
    assert await get(http, f"/{sort}/other%2Fone") == []
    assert rules(world) == Rules(max_length=2)
    assert await put(http, path, **{**POLICY, "definition": {"max-length": 7}}) == 204
    assert rules(world) == Rules(max_length=7)
    assert await delete(http, path) == 204
    assert rules(world) is None
    assert refused(await http.delete("/api" + path), 404).endswith("'short/est' in vhost '/'")


async def test_policies_and_operator_policies_are_apart(http: AsyncClient) -> None:
    await put(http, "/policies/%2F/p", **POLICY)
    assert await get(http, "/operator-policies") == []
    assert refused(await http.delete("/api/operator-policies/%2F/p"), 404)


async def test_a_pattern_and_a_definition_are_enough(http: AsyncClient) -> None:
    await put(http, "/policies/%2F/p", pattern="", definition={"ha-mode": "all"})
    found = await get(http, "/policies/%2F/p")
    assert (found["priority"], found["apply-to"]) == (0, "all")


async def test_a_priority_may_be_text(http: AsyncClient) -> None:
    await put(http, "/policies/%2F/p", **{**POLICY, "priority": "-12"})
    assert (await get(http, "/policies/%2F/p"))["priority"] == -12


async def test_messages_over_the_limit_are_gone_when_it_is_answered(
    world: World, http: AsyncClient
) -> None:
    await world.queue("mail")
    for _ in range(5):
        await http.post("/endpoint/q/mail", content=b"x")
    await put(http, "/policies/%2F/p", **POLICY)
    take_turns(world.broker)
    assert world.broker.vhosts["/"].queues["mail"].ready_count == 2


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"pattern": "("}, "policy 'p' in vhost '/': pattern: pattern '(' is not a regular"),
        ({"pattern": "a" * 65_536}, "policy 'p' in vhost '/': pattern: a pattern has 65536"),
        ({"pattern": None}, "the body needs the key 'pattern'"),
        ({"pattern": 5}, "key 'pattern' has to be a string, not 5"),
        ({"definition": None}, "the body needs the key 'definition'"),
        ({"definition": {}}, "policy 'p' in vhost '/': its definition is empty"),
        ({"definition": "x"}, "key 'definition' has to be an object, not 'x'"),
        ({"definition": {"max-len": 5}}, "policy 'p' in vhost '/': max-len: unknown key"),
        ({"definition": {"max-length": "5"}}, "policy 'p' in vhost '/': max-length: a whole"),
        ({"definition": {"max-length": 10**20 - 1}}, "definition: "),
        ({"priority": "high"}, "key 'priority' has to be a whole number, not 'high'"),
        ({"priority": 1.5}, "key 'priority' has to be a whole number, not 1.5"),
        ({"priority": True}, "key 'priority' has to be a whole number, not True"),
        ({"priority": 2**63}, "policy 'p' in vhost '/': priority: 9223372036854775808 does not"),
        ({"apply-to": "topics"}, "policy 'p' in vhost '/': apply-to: 'topics' is not one of"),
    ],
)
async def test_bad_policies_are_refused(
    http: AsyncClient, change: dict[str, Any], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    body = {key: value for key, value in {**POLICY, **change}.items() if value is not None}
    assert refused(await http.put("/api/policies/%2F/p", json=body), 400).startswith(reason)
    assert "unexpected error" not in caplog.text
    assert await get(http, "/policies") == []


async def test_operator_policies_have_fewer_keys(http: AsyncClient) -> None:
    body = {"pattern": "", "definition": {"dead-letter-exchange": ""}}
    reason = refused(await http.put("/api/operator-policies/%2F/p", json=body), 400)
    assert reason.endswith("dead-letter-exchange: operator policies don't support it")


@pytest.mark.parametrize("sort", SORTS)
async def test_policies_are_shown_in_vhosts_of_the_user_only(world: World, sort: str) -> None:
    async with world.client() as http:
        await put(http, f"/{sort}/%2F/p", **POLICY)
        await put(http, f"/{sort}/other%2Fone/p", **POLICY)
        for response in (
            await http.put(f"/api/{sort}/closed/p", json=POLICY),
            await http.get(f"/api/{sort}/closed"),
            await http.get(f"/api/{sort}/closed/p"),
            await http.delete(f"/api/{sort}/closed/p"),
        ):
            assert refused(response, 403) == "access to vhost 'closed' refused for user 'guest'"
        assert refused(await http.put(f"/api/{sort}/no/p", json=POLICY), 404) == "no vhost 'no'"
    async with world.client(auth=tagged(world, "policymaker")) as http:
        assert [found["vhost"] for found in await get(http, f"/{sort}")] == ["/"]
