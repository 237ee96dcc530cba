"""POST /endpoint (rabbithub.md section 2, http_contract.md 6-10)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from httpx import AsyncClient
from starlette.requests import ClientDisconnect

from tests.app.conftest import World
from tests.app.support import problem
from tests.core.server.support import until
from tests.support.manual_store import ManualStore
from warrenmq.app.access.authentication import Authenticator
from warrenmq.app.requests import properties
from warrenmq.core.commits import Commits
from warrenmq.core.message.model import Properties
from warrenmq.core.resources.alarms import Bounds, Reading
from warrenmq.core.vhosts import delete_vhost
from warrenmq.hub.engine.embedded import EmbeddedEngine


@pytest.fixture(autouse=True)
async def _resources(world: World) -> None:
    await world.exchange("news")
    await world.queue("in")
    await world.bind("news", "in")


async def test_body_content_type_and_key_arrive_unchanged(world: World, http: AsyncClient) -> None:
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


async def test_default_exchange(world: World, http: AsyncClient) -> None:
    assert (await http.post("/endpoint/x/?hub.topic=in", content=b"a")).status_code == 202
    assert (await world.message("in")).routing_key == "in"


class TestProperties:
    async def test_headers_of_a_delivery_are_ignored(self, world: World, http: AsyncClient) -> None:
        headers = {"X-AMQP-Routing-Key": "k", "X-AMQP-Redelivered": "true", "X-Other": "o"}
        assert (await http.post("/endpoint/x/news", headers=headers)).status_code == 202
        assert (await world.message("in")).properties == Properties(delivery_mode=2)

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
    async def test_bad_headers_are_refused(
        self, world: World, http: AsyncClient, header: tuple[str, bytes]
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
    async def test_is_kept_with_the_bytes(self, world: World, http: AsyncClient) -> None:
        headers = {"Content-Encoding": "GZIP"}
        await http.post("/endpoint/x/news", content=b"\x1f\x8b", headers=headers)
        message = await world.message("in")
        assert (message.properties.content_encoding, message.body) == ("GZIP", b"\x1f\x8b")


class TestOutcome:
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
    async def test_publishes_during_an_alarm_are_refused(
        self, world: World, http: AsyncClient, resource: str, reading: Reading, status: int
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

    async def test_during_an_alarm_no_body_is_read(self, world: World, http: AsyncClient) -> None:
        async def chunks() -> Any:
            assert not world.broker.alarms.any, "it was read"
            yield b""

        world.broker.alarms.measure(Reading(store_is_full=True))
        problem(await http.post("/endpoint/q/in", content=chunks()), 507)

    async def test_an_alarm_during_the_body_refuses_the_publish(
        self, world: World, http: AsyncClient
    ) -> None:
        async def chunks() -> Any:
            yield b"x"
            world.broker.alarms.measure(Reading(store_is_full=True))
            yield b"y"

        problem(await http.post("/endpoint/q/in", content=chunks()), 507)
        assert await world.messages("in") == []

    async def test_a_full_disk_is_507(
        self, world: World, http: AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = ManualStore()
        monkeypatch.setattr(world.broker, "store", store)
        commits = Commits(store, world.broker.on_work, world.broker.on_work)
        monkeypatch.setattr(world.broker, "commits", commits)
        waiting = asyncio.create_task(http.post("/endpoint/q/in", content=b"1"))
        await until(lambda: bool(commits.next_count))
        store.refuse()
        assert "low on disk" in problem(await waiting, 507)

    async def test_publishes_that_wait_for_the_disk_are_bounded(
        self, world: World, http: AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("warrenmq.app.routes.publish.MAX_WAITING", 2)
        store = ManualStore()
        monkeypatch.setattr(world.broker, "store", store)
        commits = Commits(store, world.broker.on_work, world.broker.on_work)
        monkeypatch.setattr(world.broker, "commits", commits)
        waiting = [asyncio.create_task(http.post("/endpoint/q/in")) for _ in range(2)]
        await until(lambda: commits.next_count == 2)
        response = await http.post("/endpoint/q/in")
        assert "too many unconfirmed publishes (limit 2)" in problem(response, 503)
        assert int(response.headers["retry-after"]) > 0
        store.commit()
        assert [(await task).status_code for task in waiting] == [202, 202]
        late = asyncio.create_task(http.post("/endpoint/q/in"))
        await until(lambda: bool(commits.next_count))
        store.commit()
        assert (await late).status_code == 202

    @pytest.mark.parametrize("resource", ["x/none", "q/none"])
    async def test_an_unknown_resource_is_404(self, http: AsyncClient, resource: str) -> None:
        assert "none" in problem(await http.post(f"/endpoint/{resource}"), 404)

    async def test_an_internal_exchange_is_403(self, http: AsyncClient) -> None:
        await http.put("/endpoint/x/inner?internal=true")
        assert "internal" in problem(await http.post("/endpoint/x/inner"), 403)

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

    async def test_details_of_an_unexpected_error_are_only_logged(
        self, http: AsyncClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def broken(*_: Any, **__: Any) -> None:
            raise ZeroDivisionError("the secret cause")

        monkeypatch.setattr(EmbeddedEngine, "publish", broken)
        response = await http.post("/endpoint/q/in")
        assert "secret" not in problem(response, 500)
        assert "the secret cause" in caplog.text


class TestConfiguredHeaders:
    async def test_each_message_gets_an_id_in_the_configured_header(self, world: World) -> None:
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

    async def test_changed_permissions_apply_to_cached_plans(self, world: World) -> None:
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

    async def test_deleted_resources_apply_to_cached_plans(
        self, world: World, http: AsyncClient
    ) -> None:
        for _ in range(2):
            assert (await http.post("/endpoint/x/news", content=b"1")).status_code == 202
        assert (await http.delete("/endpoint/x/news")).status_code == 204
        problem(await http.post("/endpoint/x/news"), 404)
        await world.exchange("news")
        assert (await http.post("/endpoint/x/news")).status_code == 202

    async def test_users_do_not_share_plans(self, world: World, http: AsyncClient) -> None:
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
        world.users.set_topic_permission("tony", "/", "tony.x", "^b", "")
        assert (await self._post(world, lambda _: None)).status_code == 202
        assert "access to topic 'a'" in problem(await self._post(world, _become_topic), 403)


async def test_repeated_publishes_use_the_cached_plan(
    world: World, http: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await http.post("/endpoint/x/news?hub.topic=a", headers={"X-Amqp-Type": "t"})

    async def asked(*_: Any) -> None:
        raise AssertionError("the user was verified again")

    monkeypatch.setattr(Authenticator, "user", asked)
    monkeypatch.setattr("warrenmq.app.routes.publish_plan.read", asked)
    monkeypatch.setattr("warrenmq.app.routes.publish_plan.require_vhost", asked)
    response = await http.post("/endpoint/x/news?hub.topic=a", headers={"X-Amqp-Type": "t"})
    assert response.status_code == 202
    assert [message.properties.type for message in await world.messages("in")] == ["t", "t"]


async def test_plans_are_bounded(http: AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bytes] = []

    def read(query: bytes, *rest: Any) -> Any:
        made.append(query)
        return properties.read(query, *rest)

    monkeypatch.setattr("warrenmq.app.routes.publish_plan.MAX_PLANS", 3)
    monkeypatch.setattr("warrenmq.app.routes.publish_plan.read", read)
    again, long = "amqp.type=0", "other=" + "x" * 3000
    for query in (*(f"amqp.type={number}" for number in range(10)), long, long, again):
        assert (await http.post(f"/endpoint/q/in?{query}")).status_code == 202
    assert len(made) == 13
