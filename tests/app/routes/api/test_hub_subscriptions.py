"""/api/hub: subscriptions of administrators and owners, and RabbitHub's management add-on."""

from __future__ import annotations

from dataclasses import fields
from typing import Any
from urllib.parse import quote

import pytest
from httpx import AsyncClient

from tests.app.conftest import World
from tests.app.routes.subscribing import KEYS, SECRET, entry, subscribe
from tests.support.http import Callback
from tests.support.settings import hub_settings
from warrenmq.app.routes.api.hub_subscriptions import ROUTES
from warrenmq.app.subscriptions.environment import environment_of
from warrenmq.app.subscriptions.ordering import in_order
from warrenmq.hub.delivery.breaker import BreakerState
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
        active for active in hub.subscription_store.all() if active.subscription.topic == topic
    )
    return found.subscription.id


async def listed(http: AsyncClient, query: str = "") -> list[dict[str, Any]]:
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
            (f"{PATH}/{{id}}/test", f"{by_id}/test", "POST", {"body": "x"}),
            (NAMED, one, "GET", None),
            (NAMED, one, "PUT", {"status": "inactive"}),
            (NAMED, one, "DELETE", None),
            (f"{PATH}/{{id}}", by_id, "DELETE", None),
            ("/hub/consumers", "/hub/consumers", "GET", None),
            ("/hub/errors", "/hub/errors", "GET", None),
            ("/hub/environment", "/hub/environment", "GET", None),
        ]

    @pytest.mark.parametrize("tag", TAGS)
    async def test_required_tags_are_enforced(self, world: World, hub: Hub, tag: str) -> None:
        credentials = tagged(world, *([tag] if tag else []))
        subscription_id = await make(hub, user="someone")
        for route, path, method, body in self.calls(subscription_id):
            needed = ROUTES[route][method].tag.tags
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
        assert [active.subscription.id for active in hub.subscription_store.all()] == [other]

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

    async def test_a_user_who_loses_the_tag_during_the_body_is_refused(
        self, world: World, hub: Hub
    ) -> None:
        async def body() -> Any:
            yield b'{"status": '
            world.users.set_tags("someone", [])
            yield b'"inactive"}'

        credentials = tagged(world, "management")
        world.users.set_permissions("someone", "/", "", "", "in")
        async with world.client(auth=credentials) as http:
            path = "/api" + named("http://127.0.0.1:9/cb")
            refused(await http.put(path, content=body()), 403)
        assert hub.subscription_store.all() == []


class TestById:
    async def test_one_is_as_in_the_listing(self, hub: Hub, http: AsyncClient) -> None:
        subscription_id = await make(hub)
        found = await get(http, f"{PATH}/{subscription_id}")
        assert tuple(found) == KEYS
        assert await listed(http) == [found]
        assert await listed(http, "?topic=other") == []
        assert (await get(http, f"{PATH}?page=1"))["filtered_count"] == 1

    async def test_an_unverified_subscription_is_not_resumed(
        self, hub: Hub, http: AsyncClient
    ) -> None:
        subscription_id = await make(hub)
        refused(await http.post(f"/api{PATH}/{subscription_id}/resume"), 400)

    async def test_renew(self, hub: Hub, http: AsyncClient) -> None:
        path = f"/api{PATH}/{await make(hub)}/renew"
        renewed = (await http.post(path, json={"lease_seconds": 77})).json()
        assert renewed["lease_seconds"] == 77
        assert "lease_seconds" in refused(await http.post(path, json={}), 400)

    async def test_an_unknown_subscription_is_404(self, http: AsyncClient) -> None:
        assert refused(await http.get(f"/api{PATH}/none"), 404) == "no subscription 'none'"


class TestAddOn:
    async def test_a_redacted_secret_reveals_nothing_about_others(
        self, world: World, hub: Hub, http: AsyncClient
    ) -> None:
        await make(hub)
        (active,) = hub.subscription_store.all()
        path = "/api" + named(active.subscription.callback)
        body = {"secret": "redacted", "status": "inactive"}
        assert (await http.put(path, json=body)).status_code == 204
        async with world.client(auth=tagged(world, "management")) as other:
            there = refused(await other.put(path, json=body), 400)
            nowhere = path.replace("/t/", "/other/")
            assert refused(await other.put(nowhere, json=body), 400) == there

    @pytest.mark.parametrize("kind", ["x", "exchange"])
    async def test_both_words_for_a_type(
        self, http: AsyncClient, callback: Callback, kind: str
    ) -> None:
        path = named(callback.url, place=f"%2F/{kind}/news")
        assert await put(http, path) == 201
        assert len((await get(http, path))["subscriptions"]) == 1

    async def test_a_callback_that_does_not_agree(
        self, http: AsyncClient, callback: Callback
    ) -> None:
        path = named(callback.url.replace("/callback", "/" + "a" * 1000))
        callback.refusal = callback.default
        assert "challenge" in refused(await http.put("/api" + path), 400)
        refused(await http.put("/api" + named(callback.url, place="%2F/topic/in")), 400)
        refused(await http.get("/api" + named(callback.url, place="%2F/topic/in")), 404)
        refused(await http.put("/api" + named("ftp://s/")), 422)
        assert await listed(http) == []

    async def test_make(self, http: AsyncClient, callback: Callback) -> None:
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

    async def test_consumers(self, http: AsyncClient, callback: Callback) -> None:
        await subscribe(http, "x/news", callback.url)
        (found,) = await listed(http)
        assert (await get(http, "/hub/consumers"))["consumers"] == [
            {
                "vhost": "/", "resource_type": "exchange", "resource_name": "news",
                "topic": "#", "callback": callback.url, "queue": found["pseudo_queue"],
                "node": "warren", "status": "running", "id": found["id"],
            }
        ]  # fmt: skip

    async def test_a_strict_order_that_waits_is_shown(self, hub: Hub, http: AsyncClient) -> None:
        subscription_id = await make(hub)
        (active,) = hub.subscription_store.all()
        active.blocking = Blocking("msg_1", 3, 1_700_000_000.5, "answered 500 \udcff")
        active.failed("answered 500 \udcff", 1.0)
        found = await get(http, f"{PATH}/{subscription_id}")
        assert found["blocked"] == {
            "webhook_id": "msg_1", "failures": 3, "reason": "answered 500 ?",
            "next_attempt_at": "2023-11-14T22:13:20.500Z",
        }  # fmt: skip
        assert found["errors"]["last_error_msg"] == "answered 500 ?"
        assert found["breaker"] == "closed"


class TestOrder:
    async def test_by_a_key_and_a_name(self, hub: Hub, http: AsyncClient) -> None:
        ids = [await make(hub, topic) for topic in ("b", "a", "c")]
        first = hub.subscription_store.by_id(ids[2])
        assert first is not None
        for at in range(3):
            first.failed("no", at)
        first.succeeded(4.0)
        found = await listed(http, "?sort=topic&sort_reverse=true")
        assert [one["topic"] for one in found] == ["c", "b", "a"]
        assert [one["topic"] for one in await listed(http, "?sort=success_ratio")][2] == "c"
        assert [one["success_ratio"] for one in found] == [0.25, None, None]
        assert len(await listed(http, "?name=in")) == 3
        assert await listed(http, "?name=nowhere") == []
        page = await get(http, f"{PATH}?sort=topic&page=2&page_size=2&name=in")
        assert [one["topic"] for one in page["subscriptions"]] == ["c"]
        assert (page["page_count"], page["filtered_count"], page["total_count"]) == (2, 3, 3)
        assert "sort is" in refused(await http.get(f"/api{PATH}?sort=colour"), 400)

    async def test_conditions_are_found_sorted_and_counted(
        self, hub: Hub, http: AsyncClient, callback: Callback
    ) -> None:
        unasked = await make(hub, "a")
        for topic in "bcde":
            await hub.subscriptions.subscribe(entry("in", topic, callback=callback.url))
        by_topic = {one.subscription.topic: one for one in hub.subscription_store.all()}
        by_topic["c"].failed("no", 1_700_000_000.0)
        for topic in "de":
            by_topic[topic].failed("no", 1_700_000_001.0).breaker.state = BreakerState.OPEN
        by_topic["e"].state.wait_for_source("it is gone")
        page = await get(http, f"{PATH}?sort=condition&condition=failing&page=1")
        worst_first = ["suspended", "open", "failing", "unconfirmed", "idle"]
        assert page["conditions"] == dict.fromkeys(worst_first, 1)
        assert page["failing_since"] == "2023-11-14T22:13:20.000Z"
        assert [one["topic"] for one in page["subscriptions"]] == ["c"]
        found = await listed(http, "?sort=condition")
        assert [one["condition"] for one in found] == worst_first
        assert found[3]["id"] == unasked
        assert "condition is" in refused(await http.get(f"/api{PATH}?condition=ill"), 400)

    async def test_thousands_are_sorted_as_few_are(self, hub: Hub) -> None:
        numbers = [number * 7919 % 1_201 for number in range(1_201)]
        assert await in_order(numbers, lambda one: one) == sorted(numbers)
        halves = await in_order(numbers, lambda one: one // 2, lambda one: one < 999, reverse=True)
        wanted = sorted((one for one in numbers if one < 999), key=lambda x: x // 2, reverse=True)
        assert halves == wanted

    async def test_an_open_breaker_is_shown_with_its_end(self, hub: Hub, http: AsyncClient) -> None:
        subscription_id = await make(hub)
        (active,) = hub.subscription_store.all()
        state = active.failed("no", 1_700_000_000.0)
        assert (await get(http, f"{PATH}/{subscription_id}"))["breaker_until"] is None
        state.breaker.state, state.rests_until = BreakerState.OPEN, 1_700_000_010.0
        found = await get(http, f"{PATH}/{subscription_id}")
        assert (found["breaker"], found["breaker_until"]) == ("open", "2023-11-14T22:13:30.000Z")


class TestEnvironment:
    async def test_all_settings_are_shown(self, http: AsyncClient) -> None:
        found = (await get(http, "/hub/environment"))["environment"]
        assert list(found) == [field.name for field in fields(HubSettings)]
        assert found["base_urls"] == ["http://hub"]
        assert found["callback_ports"] == [80, 443]
        assert found["allow_loopback"] is True
        assert found["workers"]["cpu_s"] == 5
        assert found["tunnels"]["max_polls"] == 16

    def test_secrets_are_not_shown(self) -> None:
        words = [field.name for field in fields(HubSettings) if field.type == "str"]
        secrets = [word for word in words if "secret" in word or "pass" in word or "key" in word]
        assert secrets
        shown = environment_of(hub_settings(**dict.fromkeys(secrets, SECRET)))
        assert SECRET not in str(shown)
        assert {shown[name] for name in secrets} == {"redacted"}
