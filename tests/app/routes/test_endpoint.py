"""PUT, DELETE and GET /endpoint (rabbithub.md section 1, http_contract.md 1-5)."""

from __future__ import annotations

from typing import Any

import pytest
from httpx import AsyncClient

from tests.app.conftest import World
from tests.app.support import problem
from tests.support.settings import hub_settings
from warrenmq.hub.engine.port import ExchangeSpec, QueueSpec


async def exchange(world: World, name: str, vhost: str = "/") -> ExchangeSpec:
    found = await world.engine.exchange(vhost, name)
    assert found is not None
    return found


async def queue(world: World, name: str, vhost: str = "/") -> QueueSpec:
    found = await world.engine.queue(vhost, name)
    assert found is not None
    return found.spec


class TestPut:
    @pytest.mark.parametrize(
        "path",
        [
            "x/a?amqp.exchange_type=nonsense", "x/a?durable=maybe", "x/a?colour=red", "x/a?arg.=1",
            "x/a?hub.mode=subscribe", "q/a?amqp.exchange_type=topic", "q/a?internal=true",
            "q/a?arg.x-message-ttl=-1", "q/a?arg.x-message-ttl=soon",
            "q/a?arg.x-max-length=" + "9" * 19, "q/a?arg.x-max-length=" + "9" * 9999, "q/amq.mine",
            "q/amq.gen-1",
        ],
    )  # fmt: skip
    async def test_bad_declarations_are_refused(self, http: AsyncClient, path: str) -> None:
        problem(await http.put(f"/endpoint/{path}"), 400)

    async def test_the_largest_integer(self, world: World, http: AsyncClient) -> None:
        problem(await http.put(f"/endpoint/q/in?arg.x-n={2**63}"), 400)
        assert (await http.put(f"/endpoint/q/in?arg.x-n={2**63 - 1}")).status_code == 201
        found = await world.engine.queue("/", "in")
        assert found is not None and found.spec.arguments == {"x-n": 2**63 - 1}


class TestLocation:
    async def test_the_location_is_below_the_public_url(self, world: World) -> None:
        async with world.client(public_url="https://hub.example/base", base_path="/base") as http:
            response = await http.put("/endpoint/q/a%2Fb%20c")
            assert response.headers["location"] == "https://hub.example/base/endpoint/q/a%2Fb%20c"

    @pytest.mark.parametrize("host", ["a b", "user@hub", "hub/x", "hub:x", 'hub"'])
    async def test_an_invalid_host_is_not_repeated(self, http: AsyncClient, host: str) -> None:
        response = await http.put("/endpoint/q/a", headers={"Host": host})
        assert response.headers["location"] == "http://localhost:1/endpoint/q/a"


class TestDelete:
    @pytest.mark.parametrize("query", ["if-unused=maybe", "if-full=1", "arg.a=1", "hub.mode=a"])
    async def test_bad_parameters_are_refused(
        self, world: World, http: AsyncClient, query: str
    ) -> None:
        await world.queue("in")
        problem(await http.delete(f"/endpoint/q/in?{query}"), 400)


class TestDescription:
    async def test_the_default_exchange_is_described(self, http: AsyncClient) -> None:
        response = await http.get("/endpoint/x/", headers={"Accept": "application/json"})
        assert response.json()["name"] == ""

    async def test_an_unknown_media_type_is_406(self, world: World, http: AsyncClient) -> None:
        await world.queue("in")
        problem(await http.get("/endpoint/q/in", headers={"Accept": "image/png"}), 406)

    @pytest.mark.parametrize("path", ["endpoint/q/in", "subscribe/q/in", "endpoint/x/news"])
    async def test_any_right_to_the_resource_is_needed(self, world: World, path: str) -> None:
        await world.queue("in")
        await world.exchange("news")
        place, _, name = path.rpartition("/")
        async with world.client(auth=("tony", "secret")) as http:
            for rights in (("", "", ""), ("^tony", "^tony", "^tony")):
                world.users.set_permissions("tony", "/", *rights)
                for found in (path, f"{place}/none"):
                    assert "refused for user 'tony'" in problem(await http.get(f"/{found}"), 403)
            for rights in ((name, "", ""), ("", name, ""), ("", "", name)):
                world.users.set_permissions("tony", "/", *rights)
                assert (await http.get(f"/{path}")).status_code == 200


class TestToken:
    def verification(self, **changes: str) -> dict[str, str]:
        parameters = {
            "hub.mode": "subscribe",
            "hub.topic": "t",
            "hub.challenge": "<Zq1>&",
            "hub.verify_token": "subscribe:q:in",
        }
        return {**parameters, **{f"hub.{name}": value for name, value in changes.items()}}

    async def test_challenge_is_needed(self, http: AsyncClient) -> None:
        parameters = self.verification()
        del parameters["hub.challenge"]
        assert "hub.challenge" in problem(await http.get("/endpoint/q/in", params=parameters), 400)

    async def test_credentials_that_come_must_be_right(self, world: World) -> None:
        async with world.client(auth=("guest", "wrong")) as http:
            problem(await http.get("/endpoint/q/in", params=self.verification()), 401)


async def test_titles_name_the_cause(http: AsyncClient) -> None:
    response = await http.put("/endpoint/q/amq.a")
    document: dict[str, Any] = response.json()
    assert document["title"] == "Invalid queue name"
    assert document["type"] == "urn:warren:invalid-queue-name"


async def test_a_resource_names_its_hub_and_itself(http: AsyncClient, world: World) -> None:
    """WebSub 4: so that other hubs can subscribe to its URL."""
    await world.exchange("a/b")
    for query, shown in (("", ""), ("?hub.topic=eu.%23", "?hub.topic=eu.%23"),
                         ("?hub.topic=", "?hub.topic="), ("?x=y", "")):  # fmt: skip
        response = await http.get(f"/rabbithub/endpoint/x/a%2Fb{query}")
        assert response.headers["link"] == (
            f'<http://hub/hub>; rel="hub", <http://hub/endpoint/x/a%2Fb{shown}>; rel="self"'
        )
    assert "link" not in (await http.get("/subscribe/x/a%2Fb")).headers


async def test_hub_user_reads_descriptions_without_credentials(world: World) -> None:
    await world.exchange("tony.news")
    await world.exchange("news")
    world.hub.settings = hub_settings(hub_user="tony")
    async with world.client(auth=None) as http:
        assert (await http.get("/endpoint/x/tony.news")).status_code == 200
        problem(await http.get("/endpoint/x/news"), 403)
        problem(await http.get("/other%2Fone/endpoint/x/news"), 403)
        problem(await http.put("/endpoint/x/tony.new"), 401)
        world.users.remove("tony")
        problem(await http.get("/endpoint/x/news"), 401)
    async with world.client(auth=("guest", "wrong")) as http:
        problem(await http.get("/endpoint/x/news"), 401)


@pytest.mark.parametrize(
    ("method", "path", "told"),
    [
        ("PATCH", "/endpoint/x/a", "PATCH without hub.mode"),
        ("PUT", "/endpoint/q/a?hub.mode=batch", "PUT with hub.mode=batch"),
        ("PUT", "/subscribe/x/a", "PUT without hub.mode"),
        ("GET", "/subscribe/x/a?hub.mode=subscribe", "GET with hub.mode=subscribe"),
    ],
)
async def test_unknown_operations_are_named(
    http: AsyncClient, method: str, path: str, told: str
) -> None:
    detail = problem(await http.request(method, path), 400)
    assert detail == f"{told} is not an operation here; GET describes the operations"
