"""/subscriptions: listing, one, errors, and many at once (rabbithub.md 5, http_contract.md 14)."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from httpx import AsyncClient

from tests.app.conftest import World
from tests.app.routes.subscribing import KEYS, PASSWORD, SECRET, entry, listed, subscribe
from tests.app.support import problem
from tests.hub.support import until
from tests.support.http import Answer, Callback
from tests.support.settings import hub_settings
from warrenmq.app.responses import time_slice
from warrenmq.app.subscriptions import batch as subscription_batch
from warrenmq.app.subscriptions.entry import IGNORED, READ
from warrenmq.hub.service import Hub
from warrenmq.hub.topics.names import CONTENT, topic_key

DAY_S = 86_400
OF_OTHERS = {"resource_type": "exchange", "resource_name": CONTENT}


@pytest.fixture(autouse=True)
async def _resources(world: World, hub: Hub) -> None:
    await world.exchange("news")
    await world.queue("in")


async def shortcut(http: AsyncClient, source: str, sink: str) -> None:
    """Connects two resources of the hub, such as `x/news` and `q/in`."""
    use = "hub.mode=generate_token&hub.intended_use=subscribe"
    token = (await http.get(f"/endpoint/{sink}?{use}")).text.partition("=")[2]
    form = f"hub.mode=subscribe&hub.topic=t&hub.callback=http://hub/endpoint/{sink}"
    content = f"{form}&hub.verify_token={token}"
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = await http.post(f"/subscribe/{source}", content=content, headers=headers)
    assert answer.status_code == 204, answer.text


class TestListing:
    async def test_a_listed_subscription_has_all_keys(
        self, http: AsyncClient, callback: Callback
    ) -> None:
        contact = {"app_name": "a", "contact_name": "b", "phone": "1", "email": "e"}
        given = {"max_tps": "7", "ha_mode": "all", "lease_seconds": "600", "order": "strict"}
        await subscribe(http, "x/news", callback.url, "eu.#", **given, **contact)
        (found,) = await listed(http)
        assert tuple(found) == KEYS
        own_queue = f"hub.sub.{found['id']}"
        assert {key: found[key] for key in KEYS[:5]} == {
            "vhost": "/", "resource_type": "exchange", "resource_name": "news",
            "topic": "eu.#", "callback": callback.url,
        }  # fmt: skip
        assert found["lease_seconds"] == 600
        left_s = found["lease_expiry_time_microsec"] / 1e6 - time.time()
        assert 0 < left_s <= 600
        assert (found["ha_mode"], found["max_tps"]) == ("all", 7)
        assert (found["status"], found["pseudo_queue"]) == ("active", own_queue)
        assert found["contact"] == {**contact, "description": ""}
        assert (found["owner"], found["dialect"]) == ("guest", "rabbithub")
        assert found["options"]["order"] == "strict"
        assert found["outbound_auth"] is None
        assert found["secret"] is None

    @pytest.mark.parametrize("source", ["x/news", "q/in"])
    @pytest.mark.parametrize("sink", ["x/out", "q/out"])
    async def test_fields_of_a_shortcut(
        self, world: World, http: AsyncClient, source: str, sink: str
    ) -> None:
        await world.exchange("out")
        await world.queue("out")
        await shortcut(http, source, sink)
        (found,) = await listed(http)
        assert found["pseudo_queue"] == "out"
        kind = "exchange" if sink == "x/out" else "queue"
        assert found["sink"] == {"vhost": "/", "resource_type": kind, "resource_name": "out"}
        assert found["callback"] == f"http://hub/endpoint/{sink}"

    async def test_listings_are_sorted(self, world: World, hub: Hub, http: AsyncClient) -> None:
        await world.queue("a", "other/one")
        for queue, topic in (("in", "b"), ("in", "a")):
            await hub.subscriptions.put_inactive(entry(queue, topic))
        await hub.subscriptions.put_inactive(entry("a", "c", vhost="other/one"))
        found = [(one["vhost"], one["topic"]) for one in await listed(http)]
        assert found == [("/", "a"), ("/", "b"), ("other/one", "c")]

    async def test_a_list_made_in_slices_is_complete(
        self, hub: Hub, http: AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(time_slice, "SLICE_S", 0.0)
        for topic in "abcde":
            await hub.subscriptions.put_inactive(entry("in", topic))
        assert [one["topic"] for one in await listed(http)] == list("abcde")


class TestFilters:
    @pytest.fixture(autouse=True)
    async def _some(self, world: World, hub: Hub, http: AsyncClient) -> None:
        await world.queue("in", "other/one")
        put = hub.subscriptions.put_inactive
        await put(entry("in", "a", lease_s=DAY_S // 2))
        await put(entry("in", "b", callback="http://127.0.0.1:9/other"))
        await put(entry("in", "c", vhost="other/one"))
        await put(entry("news", "d", kind="x"))

    @pytest.mark.parametrize(
        "query",
        ["vhots=/", "status=gone", "resource_type=x", "hub.expires=0", "hub.expires=soon",
         "page=0", "page=x", "page_size=0", "page_size=501", "page=" + "9" * 5000],
    )  # fmt: skip
    async def test_bad_filters_are_refused(self, http: AsyncClient, query: str) -> None:
        problem(await http.get(f"/subscriptions?{query}"), 400)

    async def test_page_of_a_filtered_list(self, http: AsyncClient) -> None:
        page = (await http.get("/subscriptions?vhost=/&page=1")).json()
        assert (page["filtered_count"], page["page_size"]) == (3, 100)


class TestBatch:
    async def post(self, http: AsyncClient, *entries: Any) -> list[dict[str, Any]]:
        response = await http.post("/subscriptions", json={"subscriptions": entries})
        assert response.status_code == 202, response.text
        results: list[dict[str, Any]] = response.json()["rabbithub_batch_results"]
        return results

    def entry(self, callback: str = "http://127.0.0.1:9/cb", **changes: Any) -> dict[str, Any]:
        basis = {"vhost": "/", "resource_type": "queue", "resource_name": "in", "topic": "t"}
        return {**basis, "callback": callback, **changes}

    async def test_a_bad_entry_leaves_the_others_alone(self, http: AsyncClient) -> None:
        good = self.entry(status="inactive")
        results = await self.post(
            http,
            self.entry(resource_name="none", status="inactive"),
            5,
            {},
            good,
            self.entry("ftp://s/", status="inactive"),
            {**good, "topic": "u"},
        )
        said = [result["status"]["consumers"][0]["status"] for result in results]
        assert [word == "ok" for word in said] == [False, False, False, True, False, True]
        assert [result.get("error", {}).get("status") for result in results] == [
            404, 400, 400, None, 422, None,
        ]  # fmt: skip
        assert "no queue 'none'" in said[0]
        assert [one["topic"] for one in await listed(http)] == ["t", "u"]

    @pytest.mark.parametrize(
        ("changes", "field"),
        [
            ({"vhost": None}, "vhost"),
            ({"topic": None}, "topic"),
            ({"topic": ["t"]}, "topic"),
            ({"callback": None}, "callback"),
            ({"resource_type": "topic"}, "resource_type"),
            ({"status": "asleep"}, "status"),
            ({"leese_seconds": 5}, "leese_seconds"),
            ({"max_tps": -1}, "hub.max_tps"),
            ({"max_tps": True}, "max_tps"),
            ({"ha_mode": "some"}, "hub.ha_mode"),
            ({"contact": {"app_name": "a", "fax": "1"}}, "contact.fax"),
            ({"contact": {"phone": "1"}}, "hub.app_name"),
            ({"contact": "me"}, "contact"),
            ({"options": {"basic_auth": "eDp5"}}, "options.basic_auth"),
            ({"options": {"order": "any"}}, "hub.order"),
            ({"outbound_auth": {"auth_type": "oauth", "auth_config": "x"}},
             "outbound_auth.auth_type"),
            ({"outbound_auth": {"auth_type": "basic_auth", "auth_config": "?"}},
             "hub.basic_auth"),
            ({"outbound_auth": {"auth_type": "basic_auth", "auth_config": "redacted"}},
             "outbound_auth.auth_config"),
            ({"secret": "redacted"}, "secret"),
            ({"owner": "nobody"}, "owner"),
            ({"owner": ""}, "owner"),
            ({"sink": {"vhost": "/"}}, "sink.resource_type"),
        ],
    )  # fmt: skip
    async def test_entries_with_bad_values_are_refused(
        self, http: AsyncClient, changes: dict[str, Any], field: str
    ) -> None:
        (result,) = await self.post(http, self.entry(**{"status": "inactive", **changes}))
        assert result["error"]["status"] == 400
        assert result["error"]["field"] == field
        assert await listed(http) == []

    async def test_an_export_can_be_imported(
        self, world: World, http: AsyncClient, callback: Callback
    ) -> None:
        await world.queue("out")
        await shortcut(http, "x/news", "q/out")
        given = {"secret": SECRET, "basic_auth": PASSWORD, "order": "strict", "in_flight": "1"}
        await subscribe(http, "x/news", callback.url, "a", lease_seconds="600", **given)
        await subscribe(http, "q/in", callback.url, "b", app_name="app", max_tps="3")
        exported = await listed(http)
        results = await self.post(http, *exported)
        assert [result["status"]["consumers"][0]["status"] for result in results] == [
            "pending", "pending", "ok",
        ]  # fmt: skip
        await until(lambda: len(callback.verifications) == 4, "verifications")
        again = await listed(http)
        times = ("lease_expiry_time_microsec", "expires_at")
        assert [{**one, **dict.fromkeys(times)} for one in again] == [
            {**one, **dict.fromkeys(times)} for one in exported
        ]

    async def test_redacted_secrets_are_unchanged(
        self, hub: Hub, http: AsyncClient, callback: Callback
    ) -> None:
        await subscribe(http, "q/in", callback.url, secret=SECRET, basic_auth=PASSWORD)
        (exported,) = await listed(http)
        await self.post(http, {**exported, "max_tps": 9, "status": "inactive"})
        (active,) = hub.subscription_store.all()
        assert active.subscription.options.max_tps == 9
        assert active.subscription.keys.secret == SECRET
        assert active.subscription.keys.basic_auth == PASSWORD

    def test_every_key_of_a_listing_is_known(self) -> None:
        assert set(KEYS) == READ | IGNORED

    @pytest.mark.parametrize(
        "body", [b"", b"{", b"[]", b"{}", b'{"subscriptions": {}}', b'{"subscriptions": 5}']
    )
    async def test_invalid_bodies_are_refused(self, http: AsyncClient, body: bytes) -> None:
        problem(await http.post("/subscriptions", content=body), 400)

    @pytest.fixture
    async def narrow(self, world: World, tmp_path: Path) -> AsyncIterator[None]:
        """A hub with room for one verification at a time."""
        settings = hub_settings(allow_loopback=True, max_pending_verifications=1)
        hub = Hub(world.engine, settings, tmp_path / "narrow")
        world.context = replace(world.context, hub=hub)
        await hub.start()
        yield
        await hub.stop()

    async def test_a_batch_waits_for_room(
        self, world: World, narrow: None, callback: Callback
    ) -> None:
        async with world.client() as http:
            entries = [self.entry(callback.url, topic=str(number)) for number in range(5)]
            results = await self.post(http, *entries)
            assert not any("error" in result for result in results)

            async def all_are_active() -> bool:
                return [one["status"] for one in await listed(http)] == ["active"] * 5

            await until(all_are_active, "subscriptions")

    async def test_waiting_for_room_is_bounded(
        self, world: World, narrow: None, callback: Callback, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(subscription_batch, "MAX_WAIT_S", 0.0)
        callback.refusal = Answer(hang=True)
        async with world.client() as http:
            entries = [self.entry(callback.url, topic=topic) for topic in "ab"]
            results = await self.post(http, *entries)
        assert [result.get("error", {}).get("status") for result in results] == [None, 503]

    async def test_entries_and_bytes_of_a_batch_are_limited(
        self, http: AsyncClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(subscription_batch, "MAX_ENTRIES", 2)
        monkeypatch.setattr(subscription_batch, "MAX_BYTES", 100)
        entries: list[Any] = [{}, {}, {}]
        problem(await http.post("/subscriptions", json={"subscriptions": entries}), 400)
        problem(await http.post("/subscriptions", content=b" " * 101), 413)

    @pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded"])
    async def test_not_from_a_form(self, http: AsyncClient, media_type: str) -> None:
        content = json.dumps({"subscriptions": [self.entry(status="inactive")]})
        headers = {"Content-Type": media_type}
        problem(await http.post("/subscriptions", content=content, headers=headers), 415)
        assert await listed(http) == []

    async def test_permissions_of_the_importing_user_apply(self, world: World) -> None:
        world.users.add("chief", "secret", ["administrator"])
        async with world.client(auth=("chief", "secret")) as http:
            (result,) = await self.post(http, self.entry(status="inactive"))
            assert result["error"]["status"] == 403
            world.users.set_permissions("chief", "/", "", "", "in")
            (result,) = await self.post(http, self.entry(status="inactive", owner="tony"))
            assert "error" not in result
            assert [one["owner"] for one in await listed(http)] == ["tony"]

    @pytest.mark.parametrize(
        ("url", "source", "topic"),
        [
            ("http://hub/endpoint/q/in", {}, ""),
            ("http://hub/endpoint/x/news", {"resource_type": "exchange"}, "#"),
            ("http://hub/endpoint/x/news?hub.topic=eu", {"resource_type": "exchange"}, "eu"),
            ("https://example.org/feed", OF_OTHERS, topic_key("https://example.org/feed")),
        ],
    )
    async def test_an_anonymous_websub_subscription_is_imported(
        self, http: AsyncClient, url: str, source: dict[str, str], topic: str
    ) -> None:
        name = {"resource_name": "news"} if "news" in url else {}
        changes = {"topic_url": url, "owner": "", "status": "inactive", **name, **source}
        (result,) = await self.post(http, self.entry(topic=topic, **changes))
        assert "error" not in result, result
        (found,) = await listed(http)
        assert (found["dialect"], found["topic_url"], found["owner"]) == ("websub", url, "")
        assert await listed(http, f"?topic={quote(url, safe='')}") == [found]

    @pytest.mark.parametrize(
        ("url", "status"),
        [
            ("http://hub/endpoint/q/other", 400),
            ("http://hub/endpoint/q/in?hub.topic=other", 400),
            ("http://hub/elsewhere", 404),
            ("https://example.org/feed", 400),
            ("feed", 400),
        ],
    )
    async def test_a_topic_url_of_another_topic_is_refused(
        self, world: World, http: AsyncClient, url: str, status: int
    ) -> None:
        await world.queue("other")
        (result,) = await self.post(http, self.entry(topic="", topic_url=url, status="inactive"))
        assert result["error"]["status"] == status
        assert await listed(http) == []


ALL = [
    ("GET", "/subscriptions"), ("HEAD", "/subscriptions"), ("POST", "/subscriptions"),
    ("GET", "/subscriptions/errors"), ("GET", "/subscriptions/x/news?hub.callback=c&hub.topic=t"),
]  # fmt: skip


class TestAccess:
    @pytest.mark.parametrize(("method", "path"), ALL)
    async def test_administrators_only(self, world: World, method: str, path: str) -> None:
        async with world.client(auth=None) as http:
            assert (await http.request(method, path)).status_code == 401
        async with world.client(auth=("tony", "secret")) as http:
            assert (await http.request(method, path)).status_code == 403
        world.users.set_tags("tony", ["monitoring", "management", "policymaker"])
        async with world.client(auth=("tony", "secret")) as http:
            response = await http.request(method, path)
            assert response.status_code == 403
            assert "administrator" in response.text or method == "HEAD"

    async def test_permissions_are_checked_again_after_the_body(
        self, world: World, hub: Hub
    ) -> None:
        async def body() -> Any:
            yield b'{"subscriptions": [{"vhost": "/", "resource_type": "queue",'
            world.users.set_tags("chief", [])
            yield b'"resource_name": "in", "topic": "t", "callback": "http://127.0.0.1:9/",'
            yield b'"status": "inactive"}]}'

        world.users.add("chief", "secret", ["administrator"])
        world.users.set_permissions("chief", "/", ".*", ".*", ".*")
        async with world.client(auth=("chief", "secret")) as http:
            problem(await http.post("/subscriptions", content=body()), 403)
        assert hub.subscription_store.all() == []

    @pytest.mark.parametrize(
        ("method", "path", "allow"),
        [
            ("PUT", "/subscriptions", "GET, HEAD, POST"),
            ("POST", "/subscriptions/errors", "GET, HEAD"),
            ("POST", "/subscriptions/x/news", "GET, HEAD"),
        ],
    )
    async def test_other_methods_are_refused(
        self, http: AsyncClient, method: str, path: str, allow: str
    ) -> None:
        response = await http.request(method, path)
        problem(response, 405)
        assert response.headers["allow"] == allow
