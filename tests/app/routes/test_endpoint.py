"""PUT, DELETE and GET /endpoint (rabbithub.md section 1, http_contract.md 1-5)."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import httpx
import pytest

from tests.app.conftest import World
from tests.app.support import problem
from warrenmq.core.message.model import Table
from warrenmq.hub.engine.port import ExchangeSpec, QueueSpec
from warrenmq.hub.settings import HubSettings


async def exchange(world: World, name: str, vhost: str = "/") -> ExchangeSpec:
    found = await world.engine.exchange(vhost, name)
    assert found is not None
    return found


async def queue(world: World, name: str, vhost: str = "/") -> QueueSpec:
    found = await world.engine.queue(vhost, name)
    assert found is not None
    return found.spec


class TestPut:
    async def test_exchange(self, world: World, http: httpx.AsyncClient) -> None:
        response = await http.put("/endpoint/x/news")
        assert response.status_code == 201
        assert response.headers["location"] == "http://hub/endpoint/x/news"
        assert await exchange(world, "news") == ExchangeSpec("news", "fanout")

    async def test_exchange_with_everything(self, world: World, http: httpx.AsyncClient) -> None:
        query = "amqp.exchange_type=topic&durable=false&auto_delete=1&internal=true"
        query += "&arg.alternate-exchange=amq.fanout"
        assert (await http.put(f"/endpoint/x/news?{query}")).status_code == 201
        arguments: Table = {"alternate-exchange": "amq.fanout"}
        assert await exchange(world, "news") == ExchangeSpec(
            "news", "topic", False, True, True, arguments
        )

    async def test_queue(self, world: World, http: httpx.AsyncClient) -> None:
        response = await http.put("/endpoint/q/in")
        assert response.status_code == 201
        assert response.headers["location"] == "http://hub/endpoint/q/in"
        assert await queue(world, "in") == QueueSpec("in")

    async def test_arguments_have_types(self, world: World, http: httpx.AsyncClient) -> None:
        query = "arg.x-max-length=10&arg.x-overflow=reject-publish&arg.x-own=true&arg.x-n=-1"
        assert (await http.put(f"/endpoint/q/in?{query}")).status_code == 201
        assert (await queue(world, "in")).arguments == {
            "x-max-length": 10,
            "x-overflow": "reject-publish",
            "x-own": True,
            "x-n": "-1",
        }

    async def test_name_is_made(self, world: World, http: httpx.AsyncClient) -> None:
        response = await http.put("/endpoint/q/")
        assert response.status_code == 201
        base, _, name = response.headers["location"].rpartition("/")
        assert base == "http://hub/endpoint/q"
        assert name.startswith("amq.gen-")
        assert await queue(world, name)

    async def test_name_is_made_in_that_vhost(self, world: World, http: httpx.AsyncClient) -> None:
        response = await http.put("/other%2fone/endpoint/q/")
        base, _, name = response.headers["location"].rpartition("/")
        assert base == "http://hub/other%2Fone/endpoint/q"
        assert await queue(world, name, "other/one")

    @pytest.mark.parametrize(
        ("first", "second", "status"),
        [
            ("x/a?amqp.exchange_type=topic", "x/a", 204),
            ("x/a?amqp.exchange_type=topic", "x/a?amqp.exchange_type=topic", 204),
            ("x/a?amqp.exchange_type=topic", "x/a?amqp.exchange_type=fanout", 409),
            ("x/a", "x/a?durable=true", 204),
            ("x/a", "x/a?durable=false", 409),
            ("x/a?internal=1", "x/a", 204),
            ("x/a?internal=1", "x/a?internal=0", 409),
            ("x/a?auto_delete=1", "x/a?auto_delete=false", 409),
            ("x/a?arg.alternate-exchange=b", "x/a", 204),
            ("x/a?arg.alternate-exchange=b", "x/a?arg.alternate-exchange=c", 409),
            ("q/a", "q/a", 204),
            ("q/a?durable=false", "q/a", 204),
            ("q/a?durable=false", "q/a?durable=true", 409),
            ("q/a?auto_delete=true", "q/a?auto_delete=false", 409),
            ("q/a?arg.x-max-length=5", "q/a", 204),
            ("q/a?arg.x-max-length=5", "q/a?arg.x-max-length=5", 204),
            ("q/a?arg.x-max-length=5", "q/a?arg.x-max-length=6", 409),
            ("q/a?arg.x-max-length=5", "q/a?arg.x-max-length=5&arg.x-message-ttl=1", 409),
        ],
    )
    async def test_what_is_given_is_compared(
        self, http: httpx.AsyncClient, first: str, second: str, status: int
    ) -> None:
        assert (await http.put(f"/endpoint/{first}")).status_code == 201
        response = await http.put(f"/endpoint/{second}")
        assert response.status_code == status
        if status == 409:
            assert "inequivalent arg" in problem(response, 409)

    @pytest.mark.parametrize(
        "path",
        [
            "x/a?amqp.exchange_type=nonsense",
            "x/a?durable=maybe",
            "x/a?colour=red",
            "x/a?arg.=1",
            "x/a?hub.mode=subscribe",
            "q/a?amqp.exchange_type=topic",
            "q/a?internal=true",
            "q/a?arg.x-message-ttl=-1",
            "q/a?arg.x-message-ttl=soon",
            "q/a?arg.x-max-length=" + "9" * 19,
            "q/a?arg.x-max-length=" + "9" * 9999,
            "q/amq.mine",
            "q/amq.gen-1",
        ],
    )
    async def test_bad(self, http: httpx.AsyncClient, path: str) -> None:
        problem(await http.put(f"/endpoint/{path}"), 400)

    async def test_reserved_exchanges(self, http: httpx.AsyncClient) -> None:
        problem(await http.put("/endpoint/x/amq.mine"), 403)
        problem(await http.put("/endpoint/x/"), 403)
        assert (await http.put("/endpoint/x/amq.topic?amqp.exchange_type=topic")).status_code == 204

    async def test_configure_is_needed(self, world: World) -> None:
        async with world.client(auth=("tony", "secret")) as http:
            for letter, kind in (("x", "exchange"), ("q", "queue")):
                refused = await http.put(f"/endpoint/{letter}/news")
                assert problem(refused, 403) == (
                    f"configure access to {kind} 'news' in vhost '/' refused for user 'tony'"
                )
                assert (await http.put(f"/endpoint/{letter}/tony-1")).status_code == 201
            problem(await http.put("/endpoint/q/"), 403)

    @pytest.mark.parametrize(
        "path", ["x/tony?arg.alternate-exchange=news", "q/tony?arg.x-dead-letter-exchange=news"]
    )
    async def test_write_is_needed_on_where_messages_go(self, world: World, path: str) -> None:
        async with world.client(auth=("tony", "secret")) as http:
            refused = await http.put(f"/endpoint/{path}")
            assert "write access to exchange 'news'" in problem(refused, 403)
            allowed = await http.put(f"/endpoint/{path.replace('=news', '=tony.x')}")
            assert allowed.status_code == 201


class TestLocation:
    async def test_public_url(self, world: World) -> None:
        async with world.client(public_url="https://hub.example/base", base_path="/base") as http:
            response = await http.put("/endpoint/q/a%2Fb%20c")
            assert response.headers["location"] == "https://hub.example/base/endpoint/q/a%2Fb%20c"

    @pytest.mark.parametrize(
        ("prefix", "shown"), [("/base/path", "/base/path"), ("/rabbithub", "")]
    )
    async def test_prefix(self, world: World, prefix: str, shown: str) -> None:
        async with world.client(base_path="/base/path") as http:
            response = await http.put(f"{prefix}/endpoint/q/a")
            assert response.headers["location"] == f"http://hub{shown}/endpoint/q/a"
            assert (await http.get(response.headers["location"])).status_code == 200

    @pytest.mark.parametrize("host", ["a b", "user@hub", "hub/x", "hub:x", 'hub"'])
    async def test_a_host_that_is_none(self, http: httpx.AsyncClient, host: str) -> None:
        response = await http.put("/endpoint/q/a", headers={"Host": host})
        assert response.headers["location"] == "http://localhost:1/endpoint/q/a"


class TestDelete:
    async def test_both(self, world: World, http: httpx.AsyncClient) -> None:
        await world.exchange("a")
        await world.queue("a")
        for letter in "xq":
            assert (await http.delete(f"/endpoint/{letter}/a")).status_code == 204
            problem(await http.delete(f"/endpoint/{letter}/a"), 404)

    async def test_full_queue_goes_unless_asked(
        self, world: World, http: httpx.AsyncClient
    ) -> None:
        await world.queue("in")
        await http.post("/endpoint/q/in")
        assert "not empty" in problem(await http.delete("/endpoint/q/in?if-empty=true"), 409)
        assert (await http.delete("/endpoint/q/in?if-empty=false")).status_code == 204

    async def test_if_unused(self, world: World, http: httpx.AsyncClient) -> None:
        await world.exchange("news")
        await world.queue("in")
        await world.bind("news", "in")
        assert "in use" in problem(await http.delete("/endpoint/x/news?if-unused=1"), 409)
        assert (await http.delete("/endpoint/q/in?if-unused=1")).status_code == 204
        assert (await http.delete("/endpoint/x/news?if-unused=1")).status_code == 204

    @pytest.mark.parametrize("name", ["", "amq.topic", "amq.direct"])
    async def test_predeclared(self, http: httpx.AsyncClient, name: str) -> None:
        problem(await http.delete(f"/endpoint/x/{name}"), 403)

    @pytest.mark.parametrize("query", ["if-unused=maybe", "if-full=1", "arg.a=1", "hub.mode=a"])
    async def test_bad(self, world: World, http: httpx.AsyncClient, query: str) -> None:
        await world.queue("in")
        problem(await http.delete(f"/endpoint/q/in?{query}"), 400)

    async def test_configure_is_needed(self, world: World) -> None:
        await world.queue("in")
        async with world.client(auth=("tony", "secret")) as http:
            assert "configure access" in problem(await http.delete("/endpoint/q/in"), 403)


class TestDescription:
    @pytest.mark.parametrize("facet", ["endpoint", "subscribe"])
    @pytest.mark.parametrize("accept", ["", "*/*", "text/*", "application/xml", "text/xml"])
    async def test_xml(
        self, world: World, http: httpx.AsyncClient, facet: str, accept: str
    ) -> None:
        await world.exchange("a<&>b")
        path = f"/{facet}/x/a%3C&%3Eb"
        response = await http.get(path, headers={"Accept": accept})
        assert response.status_code == 200
        assert response.headers["content-type"].endswith("/xml; charset=utf-8") or (
            response.headers["content-type"] == "application/xml"
        )
        root = ElementTree.fromstring(response.content)
        assert root.tag == "application"
        assert root.findtext("name") == "a<&>b"
        assert root.findtext("class") == "amqp.exchange"
        parameters = {item.get("name"): item.get("value") for item in root.iter("parameter")}
        assert parameters["exchange_type"] == "topic"
        assert [item.get("name") for item in root.findall("facets/facet")] == [facet]
        actions = root.findall("facets/facet/actions/action")
        assert {action.get("http.method") for action in actions} >= {"GET", "POST", "DELETE"}
        assert all(item.findtext("description") for item in (root, *actions))

    @pytest.mark.parametrize(
        ("place", "up"), [("", "../../"), ("/other%2Fone", "../../../"), ("/%2F", "../../../")]
    )
    async def test_stylesheet(self, world: World, place: str, up: str) -> None:
        """Below the same prefix, whatever a proxy has put before it."""
        await world.queue("in", "other/one")
        await world.queue("in")
        async with world.client(base_path="/base") as http:
            text = (await http.get(f"/base{place}/endpoint/q/in")).text
        assert f'<?xml-stylesheet type="text/xsl" href="{up}static/description.xsl"?>' in text

    async def test_json(self, world: World, http: httpx.AsyncClient) -> None:
        await world.queue("in", max_length=5)
        await http.post("/endpoint/q/in")
        response = await http.get("/endpoint/q/in", headers={"Accept": "application/json"})
        assert response.headers["content-type"] == "application/json"
        document = response.json()
        assert list(document) == ["name", "description", "class", "parameters", "facets"]
        assert (document["name"], document["class"]) == ("in", "amqp.queue")
        parameters = {item["name"]: item["value"] for item in document["parameters"]}
        assert parameters["arg.x-max-length"] == "5"
        assert parameters["messages_ready"] == "1"

    async def test_html_for_a_browser(self, world: World, http: httpx.AsyncClient) -> None:
        await world.queue("<script>alert(1)</script>")
        accept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
        path = "/endpoint/q/%3Cscript%3Ealert(1)%3C%2Fscript%3E"
        response = await http.get(path, headers={"Accept": accept})
        assert response.headers["content-type"] == "text/html; charset=utf-8"
        assert "<script" not in response.text
        assert "&lt;script&gt;" in response.text

    async def test_default_exchange(self, http: httpx.AsyncClient) -> None:
        response = await http.get("/endpoint/x/", headers={"Accept": "application/json"})
        assert response.json()["name"] == ""

    async def test_none_acceptable(self, world: World, http: httpx.AsyncClient) -> None:
        await world.queue("in")
        problem(await http.get("/endpoint/q/in", headers={"Accept": "image/png"}), 406)

    @pytest.mark.parametrize("path", ["endpoint/q/in", "subscribe/q/in", "endpoint/x/news"])
    async def test_any_right_to_the_resource_is_needed(self, world: World, path: str) -> None:
        """Counts, arguments and names are nobody else's business, as with a passive declare."""
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

    @pytest.mark.parametrize("path", ["endpoint/x/none", "endpoint/q/none", "subscribe/q/none"])
    async def test_unknown(self, http: httpx.AsyncClient, path: str) -> None:
        problem(await http.get(f"/{path}"), 404)


class TestToken:
    async def test_generate(self, world: World, http: httpx.AsyncClient) -> None:
        await world.queue("in")
        path = "/endpoint/q/in?hub.mode=generate_token&hub.intended_use=subscribe"
        response = await http.get(path)
        assert response.status_code == 200
        assert response.headers["content-type"] == "application/x-www-form-urlencoded"
        assert response.text == "hub.verify_token=subscribe%3Aq%3Ain"

    async def test_bad_use_and_unknown_resource(
        self, world: World, http: httpx.AsyncClient
    ) -> None:
        await world.queue("in")
        problem(await http.get("/endpoint/q/in?hub.mode=generate_token"), 400)
        use = "hub.mode=generate_token&hub.intended_use=subscribe"
        problem(await http.get(f"/endpoint/q/none?{use}"), 404)

    async def test_write_is_needed(self, world: World) -> None:
        await world.queue("in")
        use = "hub.mode=generate_token&hub.intended_use=subscribe"
        async with world.client(auth=("tony", "secret")) as http:
            assert "write access" in problem(await http.get(f"/endpoint/q/in?{use}"), 403)

    def verification(self, **changes: str) -> dict[str, str]:
        parameters = {
            "hub.mode": "subscribe",
            "hub.topic": "t",
            "hub.challenge": "<Zq1>&",
            "hub.verify_token": "subscribe:q:in",
        }
        return {**parameters, **{f"hub.{name}": value for name, value in changes.items()}}

    async def test_the_token_is_the_credential(self, world: World) -> None:
        async with world.client(auth=None) as http:
            response = await http.get("/endpoint/q/in", params=self.verification())
        assert (response.status_code, response.text) == (200, "<Zq1>&")
        assert response.headers["content-type"].startswith("text/plain")
        assert response.headers["x-content-type-options"] == "nosniff"

    @pytest.mark.parametrize(
        "changes", [{"verify_token": "other"}, {"mode": "unsubscribe"}, {"verify_token": ""}]
    )
    async def test_bad_token(self, world: World, changes: dict[str, str]) -> None:
        async with world.client(auth=None) as http:
            problem(await http.get("/endpoint/q/in", params=self.verification(**changes)), 400)

    async def test_challenge_is_needed(self, http: httpx.AsyncClient) -> None:
        parameters = self.verification()
        del parameters["hub.challenge"]
        assert "hub.challenge" in problem(await http.get("/endpoint/q/in", params=parameters), 400)

    async def test_credentials_that_come_must_be_right(self, world: World) -> None:
        async with world.client(auth=("guest", "wrong")) as http:
            problem(await http.get("/endpoint/q/in", params=self.verification()), 401)


@pytest.mark.parametrize(
    ("method", "query"),
    [
        ("PATCH", ""),
        ("OPTIONS", ""),
        ("GET", "?hub.mode=publish"),
        ("PUT", "?hub.mode=subscribe"),
        ("DELETE", "?hub.mode=generate_token"),
        ("GET", "?hub.mode=a&hub.mode=generate_token"),
    ],
)
async def test_invalid_operation(http: httpx.AsyncClient, method: str, query: str) -> None:
    response = await http.request(method, f"/endpoint/x/amq.topic{query}")
    problem(response, 400)


async def test_titles_name_the_cause(http: httpx.AsyncClient) -> None:
    response = await http.put("/endpoint/q/amq.a")
    document: dict[str, Any] = response.json()
    assert document["title"] == "Invalid queue name"
    assert document["type"] == "urn:warren:invalid-queue-name"


@pytest.mark.parametrize("facet", ["endpoint", "subscribe"])
async def test_head_is_get_without_its_body(http: httpx.AsyncClient, facet: str) -> None:
    response = await http.head(f"/{facet}/x/amq.topic")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/xml")
    assert (await http.head(f"/{facet}/x/none")).status_code == 404


async def test_a_resource_names_its_hub_and_itself(http: httpx.AsyncClient, world: World) -> None:
    """WebSub 4: so that other hubs can subscribe to its URL."""
    await world.exchange("a/b")
    for query, shown in (("", ""), ("?hub.topic=eu.%23", "?hub.topic=eu.%23"),
                         ("?hub.topic=", "?hub.topic="), ("?x=y", "")):  # fmt: skip
        response = await http.get(f"/rabbithub/endpoint/x/a%2Fb{query}")
        assert response.headers["link"] == (
            f'<http://hub/hub>; rel="hub", <http://hub/endpoint/x/a%2Fb{shown}>; rel="self"'
        )
    assert "link" not in (await http.get("/subscribe/x/a%2Fb")).headers


async def test_who_may_subscribe_without_credentials_may_look(world: World) -> None:
    """The setting hub_user stands in, with that user's rights."""
    await world.exchange("tony.news")
    await world.exchange("news")
    world.hub.settings = HubSettings(hub_user="tony")
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
async def test_what_is_no_operation(
    http: httpx.AsyncClient, method: str, path: str, told: str
) -> None:
    detail = problem(await http.request(method, path), 400)
    assert detail == f"{told} is not an operation here; GET describes the operations"
