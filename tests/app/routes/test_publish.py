"""POST /endpoint (rabbithub.md section 2, http_contract.md 6-10)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from starlette.requests import ClientDisconnect

from tests.app.conftest import LIMIT, World
from tests.app.support import problem
from tests.core.server.support import until
from tests.support.manual_store import ManualStore
from warrenmq.app.authentication import Authenticator
from warrenmq.core.message.model import PROPERTY_NAMES, Properties
from warrenmq.core.resources.alarms import Bounds, Reading
from warrenmq.core.vhosts import delete_vhost
from warrenmq.hub.engine.embedded import EmbeddedEngine


@pytest.fixture(autouse=True)
async def _resources(world: World) -> None:
    await world.exchange("news")
    await world.queue("in")
    await world.bind("news", "in")


async def test_body_content_type_and_key_arrive_unchanged(
    world: World, http: httpx.AsyncClient
) -> None:
    body = bytes(range(256))
    response = await http.post(
        "/endpoint/x/news?hub.topic=eu.fr",
        content=body,
        headers={"Content-Type": "application/atom+xml;  charset=X"},
    )
    assert (response.status_code, response.content) == (202, b"")
    message = await world.message("in")
    assert (message.exchange, message.routing_key, message.body) == ("news", "eu.fr", body)
    assert message.properties == Properties(
        content_type="application/atom+xml;  charset=X", delivery_mode=2
    )


async def test_nothing_given(world: World, http: httpx.AsyncClient) -> None:
    assert (await http.post("/endpoint/x/news")).status_code == 202
    message = await world.message("in")
    assert (message.routing_key, message.body) == ("", b"")
    assert message.properties == Properties(delivery_mode=2)


async def test_queue_keeps_the_topic_as_key(world: World, http: httpx.AsyncClient) -> None:
    assert (await http.post("/endpoint/q/in?hub.topic=eu.fr", content=b"a")).status_code == 202
    message = await world.message("in")
    assert (message.exchange, message.routing_key, message.body) == ("", "eu.fr", b"a")


async def test_default_exchange(world: World, http: httpx.AsyncClient) -> None:
    assert (await http.post("/endpoint/x/?hub.topic=in", content=b"a")).status_code == 202
    assert (await world.message("in")).routing_key == "in"


async def test_another_vhost(world: World, http: httpx.AsyncClient) -> None:
    await world.queue("in", vhost="other/one")
    assert (await http.post("/other%2Fone/endpoint/q/in", content=b"a")).status_code == 202
    assert (await world.message("in", vhost="other/one")).body == b"a"
    assert await world.messages("in") == []


@pytest.mark.parametrize(
    ("query", "mode"),
    [
        ("", 2),
        ("?hub.persistmsg=0", 1),
        ("?hub.persistmsg=false", 1),
        ("?hub.persistmsg=1", 2),
        ("?hub.persistmsg=true", 2),
        ("?amqp.delivery_mode=1", 1),
        ("?amqp.delivery_mode=2&hub.persistmsg=0", 2),
    ],
)
async def test_persistence(world: World, http: httpx.AsyncClient, query: str, mode: int) -> None:
    assert (await http.post("/endpoint/x/news" + query)).status_code == 202
    assert (await world.message("in")).properties.delivery_mode == mode


PROPERTIES: dict[str, tuple[str, Any]] = {
    "content_type": ("text/plain", "text/plain"),
    "content_encoding": ("gzip", "gzip"),
    "delivery_mode": ("1", 1),
    "priority": ("9", 9),
    "correlation_id": ("c-1", "c-1"),
    "reply_to": ("answers", "answers"),
    "expiration": ("60000", "60000"),
    "message_id": ("m é", "m é"),
    "timestamp": ("1700000000", 1700000000),
    "type": ("t", "t"),
    "user_id": ("guest", "guest"),
    "app_id": ("a", "a"),
    "cluster_id": ("k", "k"),
}


class TestProperties:
    def test_all_are_tried(self) -> None:
        assert {*PROPERTIES, "headers"} == set(PROPERTY_NAMES)

    @pytest.mark.parametrize("name", PROPERTIES)
    async def test_by_query(self, world: World, http: httpx.AsyncClient, name: str) -> None:
        text, value = PROPERTIES[name]
        response = await http.post("/endpoint/x/news", params={f"amqp.{name}": text})
        assert response.status_code == 202
        assert getattr((await world.message("in")).properties, name) == value

    @pytest.mark.parametrize("name", PROPERTIES)
    async def test_by_header(self, world: World, http: httpx.AsyncClient, name: str) -> None:
        text, value = PROPERTIES[name]
        header = f"X-Amqp-{name.replace('_', '-').title()}"
        response = await http.post("/endpoint/q/in", headers={header.encode(): text.encode()})
        assert response.status_code == 202
        assert getattr((await world.message("in")).properties, name) == value

    async def test_query_wins(self, world: World, http: httpx.AsyncClient) -> None:
        await http.post(
            "/endpoint/x/news?amqp.content_type=from/query",
            headers={"Content-Type": "from/plain", "X-Amqp-Content-Type": "from/header"},
        )
        assert (await world.message("in")).properties.content_type == "from/query"

    async def test_header_of_amqp_wins_over_the_plain_one(
        self, world: World, http: httpx.AsyncClient
    ) -> None:
        headers = {"X-Amqp-Content-Type": "from/header", "Content-Type": "from/plain"}
        await http.post("/endpoint/x/news", headers=headers)
        assert (await world.message("in")).properties.content_type == "from/header"

    @pytest.mark.parametrize("resource", ["x/news", "q/in"])
    async def test_message_headers(
        self, world: World, http: httpx.AsyncClient, resource: str
    ) -> None:
        await http.post(
            f"/endpoint/{resource}",
            headers={
                b"x-rabbithub-msg_header": b"Key = v 1, b=c=d",
                b"X-Amqp-Header-Lang": "fr é".encode(),
            },
        )
        assert (await world.message("in")).properties.headers == {
            "Key": "v1",
            "b": "c=d",
            "lang": "fr é",
        }

    async def test_headers_of_a_delivery_are_no_properties(
        self, world: World, http: httpx.AsyncClient
    ) -> None:
        headers = {"X-AMQP-Routing-Key": "k", "X-AMQP-Redelivered": "true", "X-Other": "o"}
        assert (await http.post("/endpoint/x/news", headers=headers)).status_code == 202
        assert (await world.message("in")).properties == Properties(delivery_mode=2)

    @pytest.mark.parametrize(
        "query",
        [
            "amqp.priority=256",
            "amqp.priority=-1",
            "amqp.priority=x",
            "amqp.priority=%D9%A1",
            "amqp.delivery_mode=3",
            "amqp.timestamp=18446744073709551615",
            "amqp.timestamp=" + "9" * 100,
            "amqp.expiration=abc",
            "amqp.expiration=-1",
            "amqp.headers=a",
            "amqp.colour=red",
            "amqp.message_id=" + "m" * 256,
            "amqp.message_id=a%0D%0Ab",
            "amqp.correlation_id=a%00b",
            "amqp.type=%FF",
            "amqp.user_id=tony",
            "amqp.mandatory=maybe",
            "hub.persistmsg=maybe",
            "hub.topic=" + "k" * 256,
            "hub.topic=%FF",
            "hub.mode=publish",
            "&".join(f"a{number}=b" for number in range(101)),
        ],
    )
    async def test_bad_values(self, world: World, http: httpx.AsyncClient, query: str) -> None:
        problem(await http.post(f"/endpoint/x/news?{query}"), 400)
        assert await world.messages("in") == []

    @pytest.mark.parametrize(
        "header",
        [
            ("X-Amqp-Priority", b"high"),
            ("X-Amqp-Message-Id", b"\xff"),
            ("X-Amqp-Header-A", b"\xff"),
            ("Content-Type", b"\xff"),
            ("x-rabbithub-msg_header", b"novalue"),
            ("x-rabbithub-msg_header", b"=v"),
        ],
    )
    async def test_bad_headers(
        self, world: World, http: httpx.AsyncClient, header: tuple[str, bytes]
    ) -> None:
        problem(await http.post("/endpoint/x/news", headers=[(header[0].encode(), header[1])]), 400)
        assert await world.messages("in") == []

    async def test_impersonator_may_set_another_user(self, world: World) -> None:
        world.users.add("proxy", "p", tags=["impersonator"])
        world.users.set_permissions("proxy", "/", "", ".*", "")
        async with world.client(auth=("proxy", "p")) as http:
            assert (await http.post("/endpoint/x/news?amqp.user_id=tony")).status_code == 202
        assert (await world.message("in")).properties.user_id == "tony"


class TestContentEncoding:
    async def test_is_kept_with_the_bytes(self, world: World, http: httpx.AsyncClient) -> None:
        headers = {"Content-Encoding": "GZIP"}
        await http.post("/endpoint/x/news", content=b"\x1f\x8b", headers=headers)
        message = await world.message("in")
        assert (message.properties.content_encoding, message.body) == ("GZIP", b"\x1f\x8b")

    @pytest.mark.parametrize(
        "headers",
        [
            [("Content-Encoding", "snappy")],
            [("Content-Encoding", "gzip, gzip")],
            [("Content-Encoding", "gzip"), ("Content-Encoding", "gzip")],
            [("Content-Encoding", "")],
        ],
    )
    async def test_unknown_or_double(
        self, http: httpx.AsyncClient, headers: list[tuple[str, str]]
    ) -> None:
        problem(await http.post("/endpoint/x/news", headers=headers), 415)


class TestOutcome:
    async def test_unroutable_is_accepted(self, world: World, http: httpx.AsyncClient) -> None:
        await world.exchange("empty")
        assert (await http.post("/endpoint/x/empty")).status_code == 202

    async def test_mandatory(self, world: World, http: httpx.AsyncClient) -> None:
        await world.exchange("empty")
        problem(await http.post("/endpoint/x/empty?amqp.mandatory=true"), 404)
        assert (await http.post("/endpoint/x/news?amqp.mandatory=true")).status_code == 202
        assert (await http.post("/endpoint/q/in?amqp.mandatory=true")).status_code == 202

    @pytest.mark.parametrize("resource", ["x/full", "q/full"])
    async def test_rejected(self, world: World, http: httpx.AsyncClient, resource: str) -> None:
        await world.exchange("full")
        await world.queue("full", max_length=1, overflow="reject-publish")
        await world.bind("full", "full")
        assert (await http.post(f"/endpoint/{resource}", content=b"1")).status_code == 202
        response = await http.post(f"/endpoint/{resource}", content=b"2")
        assert "full" in problem(response, 503)
        assert int(response.headers["retry-after"]) > 0
        assert (await world.message("full")).body == b"1"

    @pytest.mark.parametrize("resource", ["x/news", "q/in"])
    @pytest.mark.parametrize(
        ("reading", "status"),
        [
            (Reading(other_bytes=1000), 503),
            (Reading(disk_free_bytes=0), 507),
            (Reading(other_bytes=1000, disk_free_bytes=0), 507),
            (Reading(store_is_full=True), 507),
        ],
    )
    async def test_alarms(
        self,
        world: World,
        http: httpx.AsyncClient,
        resource: str,
        reading: Reading,
        status: int,
    ) -> None:
        alarms = world.broker.alarms
        alarms.bounds = Bounds(memory=500, disk_free=1000)
        alarms.measure(reading)
        response = await http.post(f"/endpoint/{resource}", content=b"1")
        assert "low on" in problem(response, status)
        assert int(response.headers["retry-after"]) > 0
        assert await world.messages("in") == []
        alarms.measure(Reading(disk_free_bytes=2000))
        assert (await http.post(f"/endpoint/{resource}", content=b"2")).status_code == 202
        assert (await world.message("in")).body == b"2"

    async def test_credentials_come_before_alarms(self, world: World) -> None:
        world.broker.alarms.measure(Reading(store_is_full=True))
        async with world.client(auth=("guest", "wrong")) as stranger:
            problem(await stranger.post("/endpoint/q/in"), 401)

    async def test_during_an_alarm_no_body_is_read(
        self, world: World, http: httpx.AsyncClient
    ) -> None:
        async def chunks() -> Any:
            assert not world.broker.alarms.any, "it was read"
            yield b""

        world.broker.alarms.measure(Reading(store_is_full=True))
        problem(await http.post("/endpoint/q/in", content=chunks()), 507)

    async def test_an_alarm_while_the_body_comes(
        self, world: World, http: httpx.AsyncClient
    ) -> None:
        async def chunks() -> Any:
            yield b"x"
            world.broker.alarms.measure(Reading(store_is_full=True))
            yield b"y"

        problem(await http.post("/endpoint/q/in", content=chunks()), 507)
        assert await world.messages("in") == []

    async def test_the_disk_takes_no_more(
        self, world: World, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = ManualStore()
        monkeypatch.setattr(world.broker, "store", store)
        store.on_commit(world.broker._committed)
        waiting = asyncio.create_task(http.post("/endpoint/q/in", content=b"1"))
        await until(lambda: bool(world.broker._waiting))
        store.refuse()
        assert "low on disk" in problem(await waiting, 507)

    async def test_those_who_wait_for_the_disk_are_bounded(
        self, world: World, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("warrenmq.app.routes.publish.MAX_WAITING", 2)
        store = ManualStore()
        monkeypatch.setattr(world.broker, "store", store)
        store.on_commit(world.broker._committed)
        waiting = [asyncio.create_task(http.post("/endpoint/q/in")) for _ in range(2)]
        await until(lambda: len(world.broker._waiting) == 2)
        response = await http.post("/endpoint/q/in")
        assert "2 publishes wait" in problem(response, 503)
        assert int(response.headers["retry-after"]) > 0
        store.commit()
        assert [(await task).status_code for task in waiting] == [202, 202]
        late = asyncio.create_task(http.post("/endpoint/q/in"))
        await until(lambda: bool(world.broker._waiting))
        store.commit()
        assert (await late).status_code == 202

    @pytest.mark.parametrize("resource", ["x/none", "q/none"])
    async def test_unknown(self, http: httpx.AsyncClient, resource: str) -> None:
        assert "none" in problem(await http.post(f"/endpoint/{resource}"), 404)

    async def test_internal_exchange(self, http: httpx.AsyncClient) -> None:
        await http.put("/endpoint/x/inner?internal=true")
        assert "internal" in problem(await http.post("/endpoint/x/inner"), 403)

    async def test_the_limit_is_inclusive(self, world: World, http: httpx.AsyncClient) -> None:
        assert (await http.post("/endpoint/q/in", content=b"x" * LIMIT)).status_code == 202
        problem(await http.post("/endpoint/q/in", content=b"x" * (LIMIT + 1)), 413)

        async def chunks() -> Any:
            for _ in range(3):
                yield b"x" * (LIMIT // 2)

        problem(await http.post("/endpoint/q/in", content=chunks()), 413)
        assert len(await world.messages("in")) == 1

    async def test_client_that_hangs_up_publishes_nothing(self, world: World) -> None:
        scope = {
            "type": "http",
            "method": "POST",
            "raw_path": b"/endpoint/q/in",
            "query_string": b"",
            "headers": [(b"authorization", b"Basic Z3Vlc3Q6Z3Vlc3Q=")],
            "client": ("127.0.0.1", 1),
        }
        parts: list[dict[str, Any]] = [
            {"type": "http.request", "body": b"half", "more_body": True},
            {"type": "http.disconnect"},
        ]

        async def receive() -> dict[str, Any]:
            return parts.pop(0)

        async def send(_: Any) -> None:
            raise ClientDisconnect

        await world.application()(scope, receive, send)
        assert await world.messages("in") == []

    async def test_unforeseen_error_tells_the_client_nothing(
        self,
        http: httpx.AsyncClient,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        async def broken(*_: Any, **__: Any) -> None:
            raise ZeroDivisionError("the secret cause")

        monkeypatch.setattr(EmbeddedEngine, "publish", broken)
        response = await http.post("/endpoint/q/in")
        assert "secret" not in problem(response, 500)
        assert "the secret cause" in caplog.text


class TestConfiguredHeaders:
    async def test_correlation_id(self, world: World) -> None:
        async with world.client(set_correlation_id="X-Correlation") as http:
            response = await http.post("/endpoint/x/news", headers={"X-Correlation": "c-1"})
            assert response.headers["x-correlation"] == "c-1"
            assert (await world.message("in")).properties.correlation_id == "c-1"
            assert "x-correlation" not in (await http.post("/endpoint/x/news")).headers

    async def test_message_id(self, world: World) -> None:
        async with world.client(set_message_id="X-Message") as http:
            made = [(await http.post("/endpoint/x/news")).headers["x-message"] for _ in range(2)]
            own = await http.post("/endpoint/x/news?amqp.message_id=mine")
        assert own.headers["x-message"] == "mine"
        assert len(set(made)) == 2
        found = [message.properties.message_id for message in await world.messages("in")]
        assert found == [*made, "mine"]


class TestAccess:
    async def test_write_is_needed(self, world: World) -> None:
        await world.queue("tony.in")
        async with world.client(auth=("tony", "secret")) as http:
            refused = await http.post("/endpoint/x/news")
            assert problem(refused, 403) == (
                "write access to exchange 'news' in vhost '/' refused for user 'tony'"
            )
            problem(await http.post("/endpoint/q/in"), 403)
            assert (await http.post("/endpoint/q/tony.in")).status_code == 202

    async def test_default_exchange_is_a_resource(self, world: World) -> None:
        async with world.client(auth=("tony", "secret")) as http:
            refused = await http.post("/endpoint/x/?hub.topic=in")
            assert "'amq.default'" in problem(refused, 403)

    async def test_vhost(self, http: httpx.AsyncClient) -> None:
        problem(await http.post("/nowhere/endpoint/x/news"), 404)
        problem(await http.post("/closed/endpoint/x/news"), 403)

    async def test_answers_follow_the_permissions(self, world: World) -> None:
        """Plans are remembered; a change must void them."""
        async with world.client(auth=("tony", "secret")) as http:
            problem(await http.post("/endpoint/q/in"), 403)
            world.users.set_permissions("tony", "/", "", ".*", "")
            assert (await http.post("/endpoint/q/in")).status_code == 202
            world.users.set_permissions("tony", "/", "", "^tony", "")
            problem(await http.post("/endpoint/q/in"), 403)
            world.users.clear_permissions("tony", "/")
            problem(await http.post("/endpoint/q/tony.in"), 403)
            world.users.remove("tony")
            problem(await http.post("/endpoint/q/in"), 401)

    async def test_answers_follow_the_resources(
        self, world: World, http: httpx.AsyncClient
    ) -> None:
        for _ in range(2):
            assert (await http.post("/endpoint/x/news", content=b"1")).status_code == 202
        assert (await http.delete("/endpoint/x/news")).status_code == 204
        problem(await http.post("/endpoint/x/news"), 404)
        await world.exchange("news")
        assert (await http.post("/endpoint/x/news")).status_code == 202

    async def test_users_do_not_share_plans(self, world: World, http: httpx.AsyncClient) -> None:
        assert (await http.post("/endpoint/q/in?amqp.user_id=guest")).status_code == 202
        world.users.set_permissions("tony", "/", "", ".*", "")
        async with world.client(auth=("tony", "secret")) as tony:
            problem(await tony.post("/endpoint/q/in?amqp.user_id=guest"), 400)


Change = Callable[[World], object]


def _become_topic(world: World) -> None:
    vhost = world.broker.vhosts["/"]
    vhost.delete_exchange("tony.x")
    vhost.declare_exchange(
        "tony.x", "topic", durable=False, auto_delete=False, internal=False, arguments={}
    )


class TestChangesWhileTheBodyComes:
    """A body of 16 MiB may take hours, and who sends it is allowed to no longer than others."""

    CHANGES: tuple[tuple[Change, int], ...] = (
        (lambda world: world.users.set_permissions("tony", "/", "", ".*", ""), 202),
        (lambda world: world.users.set_permissions("tony", "/", "", "", ""), 403),
        (lambda world: world.users.clear_permissions("tony", "/"), 403),
        (lambda world: world.users.set_topic_permission("tony", "/", "tony.x", "^b", ""), 202),
        (lambda world: world.users.remove("tony"), 401),
        (lambda world: world.users.add("tony", "another"), 401),
        (lambda world: delete_vhost(world.broker, "/"), 404),
    )

    async def _post(self, world: World, change: Change) -> httpx.Response:
        async def chunks() -> Any:
            yield b"x"
            change(world)
            yield b"y"

        async with world.client(auth=("tony", "secret")) as http:
            return await http.post("/endpoint/x/tony.x?hub.topic=a", content=chunks())

    @pytest.fixture
    async def mine(self, world: World) -> None:
        await world.exchange("tony.x", "fanout")
        await world.bind("tony.x", "in")

    @pytest.mark.parametrize(("change", "status"), CHANGES)
    async def test_of_users_and_rights(
        self, world: World, mine: None, change: Change, status: int
    ) -> None:
        response = await self._post(world, change)
        if status != 202:
            problem(response, status)
        assert response.status_code == status
        if "/" in world.broker.vhosts:
            assert len(await world.messages("in")) == (status == 202)

    async def test_of_the_exchange(self, world: World, mine: None) -> None:
        """Its type decides whether the key has to be permitted."""
        world.users.set_topic_permission("tony", "/", "tony.x", "^b", "")
        assert (await self._post(world, lambda _: None)).status_code == 202
        assert "access to topic 'a'" in problem(await self._post(world, _become_topic), 403)


async def test_repeats_ask_nobody(
    world: World, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await http.post("/endpoint/x/news?hub.topic=a", headers={"X-Amqp-Type": "t"})

    async def asked(*_: Any) -> None:
        raise AssertionError("the user was verified again")

    monkeypatch.setattr(Authenticator, "user", asked)
    monkeypatch.setattr("warrenmq.app.routes.publish.read", asked)
    monkeypatch.setattr("warrenmq.app.routes.publish.require_vhost", asked)
    response = await http.post("/endpoint/x/news?hub.topic=a", headers={"X-Amqp-Type": "t"})
    assert response.status_code == 202
    assert [message.properties.type for message in await world.messages("in")] == ["t", "t"]


async def test_plans_are_bounded(
    http: httpx.AsyncClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warrenmq.app.routes.publish.MAX_PLANS", 3)
    application = http._transport.app  # type: ignore[attr-defined]
    for number in range(10):
        await http.post(f"/endpoint/q/in?amqp.message_id={number}")
        await http.post(f"/endpoint/q/in?other={'x' * 3000}{number}")
    assert len(application._publisher._plans) <= 3
    assert len(await world.messages("in")) == 20
