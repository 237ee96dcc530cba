"""/api/hub: subscriptions of administrators and owners, and RabbitHub's management add-on."""

from __future__ import annotations

from dataclasses import fields
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.app.conftest import World
from tests.app.routes.subscribing import KEYS, PASSWORD, SECRET, entry, subscribe
from tests.support.http import Callback
from warrenmq.app.environment import environment_of
from warrenmq.app.routes.api.hub_subscriptions import ROUTES
from warrenmq.hub.delivery.failure_state import Blocking
from warrenmq.hub.service import Hub
from warrenmq.hub.settings import HubSettings

from .support import delete, get, put, refused, tagged

PATH = "/hub/subscriptions"
NAMED = f"{PATH}/{{vhost}}/{{type}}/{{name}}/{{topic}}/{{callback}}"
TAGS = ("", "management", "policymaker", "monitoring", "administrator")


@pytest.fixture(autouse=True)
async def _resources(world: World, hub: Hub) -> None:
    await world.queue("in")
    await world.exchange("news")


async def make(hub: Hub, topic: str = "t", user: str = "guest") -> str:
    """The id of an inactive one."""
    await hub.subscriptions.put_inactive(entry("in", topic, user=user))
    (found,) = (
        active
        for active in hub.subscriptions.active_subscriptions()
        if active.subscription.topic == topic
    )
    return found.subscription.id


async def listed(http: httpx.AsyncClient, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await get(http, PATH + query))["subscriptions"]
    return found


def named(callback: str, topic: str = "t", place: str = "%2F/queue/in") -> str:
    return f"{PATH}/{place}/{quote(topic, safe='')}/{quote(callback, safe='')}"


class TestWhoMay:
    def calls(self, subscription_id: str) -> list[tuple[str, str, str, Any]]:
        """Route, path, method and body of all there are."""
        one = named("http://127.0.0.1:9/cb")
        by_id = f"{PATH}/{subscription_id}"
        return [
            (PATH, PATH, "GET", None),
            (PATH, PATH, "POST", {}),
            (f"{PATH}/batch", f"{PATH}/batch", "POST", {"subscriptions": []}),
            (f"{PATH}/{{id}}", by_id, "GET", None),
            (f"{PATH}/{{id}}/pause", f"{by_id}/pause", "POST", None),
            (f"{PATH}/{{id}}/resume", f"{by_id}/resume", "POST", None),
            (f"{PATH}/{{id}}/renew", f"{by_id}/renew", "POST", {"lease_seconds": 60}),
            (NAMED, one, "GET", None),
            (NAMED, one, "PUT", {"status": "inactive"}),
            (NAMED, one, "DELETE", None),
            (f"{PATH}/{{id}}", by_id, "DELETE", None),
            ("/hub/consumers", "/hub/consumers", "GET", None),
            ("/hub/errors", "/hub/errors", "GET", None),
            ("/hub/environment", "/hub/environment", "GET", None),
        ]

    @pytest.mark.parametrize("tag", TAGS)
    async def test_tags(self, world: World, hub: Hub, tag: str) -> None:
        credentials = tagged(world, *([tag] if tag else []))
        subscription_id = await make(hub, user="someone")
        for route, path, method, body in self.calls(subscription_id):
            needed = ROUTES[route][method][1].tags
            async with world.client(auth=credentials) as http:
                content = {} if body is None else {"json": body}
                response = await http.request(method, "/api" + path, **content)
            is_refused = response.status_code == 403 and "needs the tag" in response.text
            assert is_refused is (tag not in needed), (path, method, response.text)

    async def test_all_are_tried_and_need_credentials(self, world: World, hub: Hub) -> None:
        calls = self.calls(await make(hub))
        assert {(call[0], call[2]) for call in calls} == {
            (path, method) for path, methods in ROUTES.items() for method in methods
        }
        async with world.client(auth=None) as http:
            for _, path, method, _ in calls:
                assert (await http.request(method, "/api" + path)).status_code == 401

    async def test_owners_see_their_own(self, world: World, hub: Hub) -> None:
        mine, other = await make(hub, "mine", "someone"), await make(hub, "other")
        async with world.client(auth=tagged(world, "management")) as http:
            assert [one["id"] for one in await listed(http)] == [mine]
            assert (await get(http, f"{PATH}/{mine}"))["topic"] == "mine"
            cb = "http://127.0.0.1:9/cb"
            assert (await http.get("/api" + named(cb, "mine"))).status_code == 200
            refused(await http.get("/api" + named(cb, "other")), 404)
            for method, rest in (("GET", ""), ("DELETE", ""), ("POST", "/pause"),
                                 ("POST", "/resume"), ("POST", "/renew")):  # fmt: skip
                body = {"lease_seconds": 60} if rest == "/renew" else None
                answer = await http.request(method, f"/api{PATH}/{other}{rest}", json=body)
                assert refused(answer, 404) == f"no subscription '{other}'"
            assert await delete(http, f"{PATH}/{mine}") == 204
        assert [active.subscription.id for active in hub.subscriptions.active_subscriptions()] == [
            other
        ]

    async def test_owners_need_the_right_to_read(self, world: World, hub: Hub) -> None:
        async with world.client(auth=tagged(world, "management")) as http:
            path = "/api" + named("http://127.0.0.1:9/cb")
            answer = await http.put(path, json={"status": "inactive"})
            assert "read access to queue 'in'" in refused(answer, 403)
            world.users.set_permissions("someone", "/", "", "", "in")
            body = {"status": "inactive", "owner": "guest"}
            refused(await http.put(path, json=body), 403)
            assert (await http.put(path, json={"status": "inactive"})).status_code == 201
            assert [one["owner"] for one in await listed(http)] == ["someone"]

    async def test_a_right_that_is_lost_while_the_body_comes(self, world: World, hub: Hub) -> None:
        async def body() -> Any:
            yield b'{"status": '
            world.users.set_tags("someone", [])
            yield b'"inactive"}'

        credentials = tagged(world, "management")
        world.users.set_permissions("someone", "/", "", "", "in")
        async with world.client(auth=credentials) as http:
            path = "/api" + named("http://127.0.0.1:9/cb")
            refused(await http.put(path, content=body()), 403)
        assert hub.subscriptions.active_subscriptions() == []


class TestById:
    async def test_one_is_as_in_the_listing(self, hub: Hub, http: httpx.AsyncClient) -> None:
        subscription_id = await make(hub)
        found = await get(http, f"{PATH}/{subscription_id}")
        assert tuple(found) == KEYS
        assert await listed(http) == [found]
        assert await listed(http, "?topic=other") == []
        assert (await get(http, f"{PATH}?page=1"))["filtered_count"] == 1

    async def test_pause_and_resume(self, http: httpx.AsyncClient, callback: Callback) -> None:
        await subscribe(http, "q/in", callback.url)
        (found,) = await listed(http)
        path = f"/api{PATH}/{found['id']}"
        assert len((await get(http, "/hub/consumers"))["consumers"]) == 1
        paused = (await http.post(f"{path}/pause")).json()
        assert (paused["status"], paused["paused_reason"]) == ("inactive", "paused by an operator")
        assert (await get(http, "/hub/consumers"))["consumers"] == []
        resumed = (await http.post(f"{path}/resume")).json()
        assert (resumed["status"], resumed["paused_reason"]) == ("active", None)
        assert len((await get(http, "/hub/consumers"))["consumers"]) == 1
        assert len(callback.verifications) == 1

    async def test_what_never_agreed_can_not_be_resumed(
        self, hub: Hub, http: httpx.AsyncClient
    ) -> None:
        subscription_id = await make(hub)
        refused(await http.post(f"/api{PATH}/{subscription_id}/resume"), 400)

    async def test_renew(self, hub: Hub, http: httpx.AsyncClient) -> None:
        path = f"/api{PATH}/{await make(hub)}/renew"
        renewed = (await http.post(path, json={"lease_seconds": 77})).json()
        assert renewed["lease_seconds"] == 77
        assert "lease_seconds" in refused(await http.post(path, json={}), 400)

    async def test_unknown(self, http: httpx.AsyncClient) -> None:
        assert refused(await http.get(f"/api{PATH}/none"), 404) == "no subscription 'none'"


class TestAddOn:
    async def test_what_is_redacted_does_not_tell_of_others(
        self, world: World, hub: Hub, http: httpx.AsyncClient
    ) -> None:
        await make(hub)
        (active,) = hub.subscriptions.active_subscriptions()
        path = "/api" + named(active.subscription.callback)
        body = {"secret": "redacted", "status": "inactive"}
        assert (await http.put(path, json=body)).status_code == 204
        async with world.client(auth=tagged(world, "management")) as other:
            there = refused(await other.put(path, json=body), 400)
            nowhere = path.replace("/t/", "/other/")
            assert refused(await other.put(nowhere, json=body), 400) == there

    async def test_put_get_delete(self, http: httpx.AsyncClient, callback: Callback) -> None:
        path = named(callback.url, "a/b %")
        given = {"lease_seconds": 60, "max_tps": 5, "secret": SECRET}
        auth = {"auth_type": "basic_auth", "auth_config": PASSWORD}
        response = await http.put("/api" + path, json={**given, "outbound_auth": auth})
        assert response.status_code == 201, response.text
        (question,) = callback.verifications
        assert question.query["hub.topic"] == "a/b %"
        (found,) = (await get(http, path))["subscriptions"]
        assert response.headers["location"] == f"http://hub/api{PATH}/{found['id']}"
        assert (found["lease_seconds"], found["max_tps"]) == (60, 5)
        assert (found["status"], found["secret"]) == ("active", "redacted")
        assert await put(http, path) == 204
        assert len(callback.verifications) == 2
        assert await delete(http, path) == 204
        assert await delete(http, path) == 404

    @pytest.mark.parametrize("kind", ["x", "exchange"])
    async def test_both_words_for_a_type(
        self, http: httpx.AsyncClient, callback: Callback, kind: str
    ) -> None:
        path = named(callback.url, place=f"%2F/{kind}/news")
        assert await put(http, path) == 201
        assert len((await get(http, path))["subscriptions"]) == 1

    async def test_a_callback_that_does_not_agree(
        self, http: httpx.AsyncClient, callback: Callback
    ) -> None:
        path = named(callback.url.replace("/callback", "/" + "a" * 1000))
        callback.refusal = callback.default
        assert "challenge" in refused(await http.put("/api" + path), 400)
        refused(await http.put("/api" + named(callback.url, place="%2F/topic/in")), 400)
        refused(await http.get("/api" + named(callback.url, place="%2F/topic/in")), 404)
        refused(await http.put("/api" + named("ftp://s/")), 422)
        assert await listed(http) == []

    async def test_make(self, http: httpx.AsyncClient, callback: Callback) -> None:
        """As the add-on's page posts it."""
        body = {
            "vhost": "/", "queue-or-exchange": "q", "q-or-x-name": "in",
            "callback-uri": callback.url, "topic": "t", "lease-seconds": "1000",
        }  # fmt: skip
        response = await http.post("/api" + PATH, json=body)
        assert response.status_code == 201
        assert (await http.get(response.headers["location"])).json()["lease_seconds"] == 1000

    async def test_a_vhost_called_batch(self, world: World, hub: Hub) -> None:
        world.broker.add_vhost("batch")
        world.users.set_permissions("guest", "batch", ".*", ".*", ".*")
        await world.queue("in", "batch")
        await hub.subscriptions.put_inactive(entry("in", "t", vhost="batch"))
        async with world.client() as http:
            path = named("http://127.0.0.1:9/cb", place="batch/queue/in")
            assert len((await get(http, path))["subscriptions"]) == 1

    async def test_upload(self, hub: Hub, http: httpx.AsyncClient) -> None:
        await make(hub)
        exported = await get(http, PATH)
        response = await http.post(f"/api{PATH}/batch", json=exported)
        assert response.status_code == 202
        (result,) = response.json()["rabbithub_batch_results"]
        assert result["status"] == {"consumers": [{"node": "warren", "status": "ok"}]}

    async def test_consumers(self, http: httpx.AsyncClient, callback: Callback) -> None:
        await subscribe(http, "x/news", callback.url)
        (found,) = await listed(http)
        assert (await get(http, "/hub/consumers"))["consumers"] == [
            {
                "vhost": "/", "resource_type": "exchange", "resource_name": "news",
                "topic": "#", "callback": callback.url, "queue": found["pseudo_queue"],
                "node": "warren", "status": "running", "id": found["id"],
            }
        ]  # fmt: skip

    async def test_errors(self, hub: Hub, http: httpx.AsyncClient) -> None:
        await make(hub, "well")
        await make(hub, "ill")
        (active,) = (
            one
            for one in hub.subscriptions.active_subscriptions()
            if one.subscription.topic == "ill"
        )
        active.failed("the callback answered 503", 1.5)
        active.failed("the callback answered 500", 2.25)
        for found in (
            (await get(http, "/hub/errors"))["errors"],
            (await http.get("/subscriptions/errors")).json()["errors"],
        ):
            assert found == [
                {
                    "resource": "/", "queue": "in", "topic": "ill",
                    "callback": "http://127.0.0.1:9/cb", "error_count": 2,
                    "first_error_time_microsec": 1_500_000,
                    "last_error_time_microsec": 2_250_000,
                    "last_error_msg": "the callback answered 500", "id": active.subscription.id,
                }
            ]  # fmt: skip
        shown = await get(http, f"{PATH}/{active.subscription.id}")
        assert shown["errors"]["error_count"] == 2
        assert (await get(http, "/hub/errors?topic=well"))["errors"] == []
        active.succeeded(3.0)
        assert (await get(http, "/hub/errors"))["errors"] == []

    async def test_a_strict_order_that_waits_is_shown(
        self, hub: Hub, http: httpx.AsyncClient
    ) -> None:
        subscription_id = await make(hub)
        (active,) = hub.subscriptions.active_subscriptions()
        active.blocking = Blocking("msg_1", 3, 1_700_000_000.5, "answered 500 \udcff")
        active.failed("answered 500 \udcff", 1.0)
        found = await get(http, f"{PATH}/{subscription_id}")
        assert found["blocked"] == {
            "webhook_id": "msg_1", "failures": 3, "reason": "answered 500 ?",
            "next_attempt_at": "2023-11-14T22:13:20.500Z",
        }  # fmt: skip
        assert found["errors"]["last_error_msg"] == "answered 500 ?"
        assert found["breaker"] == "closed"


class TestEnvironment:
    async def test_all_settings(self, http: httpx.AsyncClient) -> None:
        found = (await get(http, "/hub/environment"))["environment"]
        assert list(found) == [field.name for field in fields(HubSettings)]
        assert found["base_urls"] == ["http://hub"]
        assert found["callback_ports"] == [80, 443]
        assert found["allow_loopback"] is True
        assert found["workers"]["cpu_s"] == 5

    def test_no_secret(self) -> None:
        words = [field.name for field in fields(HubSettings) if field.type == "str"]
        secrets = [word for word in words if "secret" in word or "pass" in word or "key" in word]
        assert secrets
        shown = environment_of(HubSettings(**dict.fromkeys(secrets, SECRET)))  # type: ignore[arg-type]
        assert SECRET not in str(shown)
        assert {shown[name] for name in secrets} == {"redacted"}
