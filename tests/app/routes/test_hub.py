"""/hub: WebSub and its forerunners, by HTTP on a real hub (websub.md 1, 2, 5)."""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.app.conftest import GUEST, World
from tests.hub.support import subscriptions_of, until
from tests.support.http import Answer, Callback
from tests.support.settings import hub_settings
from warrenmq.app.routes.ping import content_type_of
from warrenmq.core.message.model import Properties
from warrenmq.core.server.listener import Listener
from warrenmq.hub.requests import Resource
from warrenmq.hub.service import Hub
from warrenmq.hub.subscriptions.subscription import ANONYMOUS_LIMITS
from warrenmq.hub.topics.names import CONTENT, ENTRIES

NEWS_URL = "http://hub/endpoint/x/news?hub.topic=eu.%23"
FEED = "http://127.0.0.1:1/feed.xml"  # where nobody listens
ALLOWED = "GET, HEAD, POST"
PLAIN = Properties()


class Front:
    """A hub and clients of it; `http` comes without credentials."""

    def __init__(self, world: World, hub: Hub, http: httpx.AsyncClient) -> None:
        self.world = world
        self.hub = hub
        self.http = http

    async def post(self, mode: str | None, **given: Any) -> httpx.Response:
        """`topic` is `hub.topic`; `auth` and `path` are not part of the form."""
        options = {name: given.pop(name) for name in ("auth",) if name in given}
        path = given.pop("path", "/hub")
        form = {f"hub.{name}": value for name, value in given.items()}
        if mode is not None:
            form["hub.mode"] = mode
        return await self.http.post(path, data=form, **options)

    async def subscribed(self, count: int = 1) -> None:
        await until(lambda: len(subscriptions_of(self.hub)) == count, f"{count} subscriptions")


@asynccontextmanager
async def open_front(world: World, directory: Path, **changed: Any) -> AsyncIterator[Front]:
    listener = Listener(world.broker)
    await listener.start([])
    await world.exchange("news")
    await world.queue("in")
    given = {"hub_foreign_topics": True, "hub_anonymous": True, **changed}
    settings = hub_settings(allow_loopback=True, base_urls=("http://hub",), **given)
    hub = Hub(world.engine, settings, directory)
    world.context = replace(world.context, hub=hub)
    await hub.start()
    async with world.client(auth=None) as http:
        yield Front(world, hub, http)
    await hub.stop()
    await listener.stop()


@pytest.fixture
async def front(world: World, tmp_path: Path) -> AsyncIterator[Front]:
    async with open_front(world, tmp_path, hub_user="guest") as front:
        yield front


def reason(response: httpx.Response, status: int) -> str:
    """The line of plain text that says why."""
    assert response.status_code == status, (response.status_code, response.text)
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert response.text.endswith("\n") and response.text.count("\n") == 1
    return response.text


class TestSubscribe:
    @pytest.mark.parametrize("path", ["/base/hub", "/hub"])
    async def test_below_the_base_path_and_without_it(
        self, front: Front, callback: Callback, path: str
    ) -> None:
        async with front.world.client(auth=None, base_path="/base") as front.http:
            answer = await front.post("subscribe", topic=NEWS_URL, callback=callback.url, path=path)
        assert answer.status_code == 202

    async def test_the_host_of_an_anonymous_request_is_not_used(
        self, front: Front, callback: Callback
    ) -> None:
        front.http.headers["Host"] = "evil.example"
        for number, given in enumerate(({}, {"auth": GUEST})):
            asked = {"topic": NEWS_URL, "callback": f"{callback.url}/{number}"}
            assert (await front.post("subscribe", **asked, **given)).status_code == 202
        await front.subscribed(2)
        found = {one.is_anonymous: one.base_url for one in subscriptions_of(front.hub)}
        assert found == {True: "http://localhost:1", False: "http://evil.example"}

    async def test_below_a_base_path_of_that_name(self, front: Front) -> None:
        async with front.world.client(auth=None, base_path="/hub") as http:
            assert "WebSub hub" in (await http.get("/hub")).text
            assert "WebSub hub" in (await http.get("/hub/hub")).text
            assert (await http.get("/hub/")).text.startswith("Warren")

    async def test_a_token_of_this_hub_is_only_shown_to_the_callback(
        self, front: Front, callback: Callback
    ) -> None:
        token = front.hub.shortcuts.generate_token(Resource("/", "q", "in"), "subscribe")
        await front.post("subscribe", topic=NEWS_URL, callback=callback.url, verify_token=token)
        await front.subscribed()
        assert callback.verifications[0].query["hub.verify_token"] == token


class TestRefusals:
    @pytest.mark.parametrize(
        ("changed", "status", "told"),
        [
            ({"topic": "http://a.b/" + "x" * 2_048}, 400, "hub.topic: is 2059 characters long"),
            ({"topic": NEWS_URL + "x" * 256}, 400, "hub.topic: is 260 bytes long"),
            ({"topic": "http://hub/nothing"}, 404, "none of an exchange or queue"),
            ({"topic": "http://hub/none/endpoint/x/news"}, 404, "no vhost 'none'"),
            ({"topic": "http://hub/closed/endpoint/x/news"}, 403, "vhost 'closed'"),
            ({"topic": FEED, "content": "half"}, 400, "hub.content: is unknown"),
            ({"callback": "http://hub/endpoint/q/in"}, 422, "own address"),
            (
                {"lease_seconds": "0"},
                400,
                "given: 0; right: 1 to 864000, longer",
            ),
        ],
    )
    async def test_bad_parameters_are_refused_with_the_reason(
        self, front: Front, changed: dict[str, str | None], status: int, told: str
    ) -> None:
        form = {"topic": NEWS_URL, "callback": "http://a.b/cb", **changed}
        given = {name: value for name, value in form.items() if value is not None}
        text = reason(await front.post("subscribe", **given), status)
        assert told in text
        assert "you@" not in text

    async def test_large_and_encoded_bodies_are_refused(self, front: Front) -> None:
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        answer = await front.http.post("/hub", content=b"x" * (1024 * 1024 + 1), headers=headers)
        assert "1048576 bytes" in reason(answer, 413)
        encoded = {**headers, "Content-Encoding": "gzip"}
        reason(await front.http.post("/hub", content=b"x", headers=encoded), 415)
        reason(await front.http.post("/hub", content=b"hub.mode=\xff", headers=headers), 400)
        long = b"hub.mode=nothing&a=" + b"%41" * 100_000
        assert "given: nothing" in reason(
            await front.http.post("/hub", content=long, headers=headers), 400
        )

    async def test_other_methods_are_refused(self, front: Front) -> None:
        for method in ("PUT", "DELETE", "PATCH"):
            answer = await front.http.request(method, "/hub")
            reason(answer, 405)
            assert answer.headers["allow"] == ALLOWED

    async def test_parameters_in_the_query_are_ignored(self, front: Front) -> None:
        query = {"hub.mode": "publish", "hub.url": "http://a.b/"}
        assert "hub.mode: is required" in reason(await front.http.post("/hub", params=query), 400)

    async def test_too_many_pending_requests_are_refused(
        self, world: World, tmp_path: Path, callback: Callback
    ) -> None:
        callback.refusal = Answer(hang=True)
        few = {"max_pending_per_domain": 1, "hub_user": "guest", "verify_timeout_s": 1.0}
        async with open_front(world, tmp_path, **few) as front:
            asked = {"topic": NEWS_URL, "callback": callback.url}
            assert (await front.post("subscribe", **asked)).status_code == 202
            answer = await front.post("subscribe", **asked)
            assert "too many verifications" in reason(answer, 503)
            assert answer.headers["retry-after"] == "5"


class TestWho:
    async def test_external_topics_are_off_by_default(
        self, world: World, tmp_path: Path, callback: Callback
    ) -> None:
        asked = {"topic": FEED, "callback": callback.url}
        async with open_front(
            world, tmp_path, hub_foreign_topics=False, hub_anonymous=False
        ) as front:
            for mode in ("subscribe", "unsubscribe"):
                answer = await front.post(mode, **asked)
                assert "hub_foreign_topics" in reason(answer, 401)
                assert answer.headers["www-authenticate"].startswith("Basic")
            answer = await front.post("subscribe", **asked, auth=GUEST)
            assert "hub_foreign_topics" in reason(answer, 403)
            assert "hub_foreign_topics" in reason(await front.post("publish", url=FEED), 403)
            assert (await front.post("unsubscribe", **asked, auth=GUEST)).status_code == 202
        assert callback.requests == []

    async def test_external_topics_for_users_only(
        self, world: World, tmp_path: Path, callback: Callback
    ) -> None:
        asked = {"topic": FEED, "callback": callback.url}
        async with open_front(world, tmp_path, hub_anonymous=False) as front:
            assert "hub_anonymous" in reason(await front.post("subscribe", **asked), 401)
            assert (await front.post("subscribe", **asked, auth=GUEST)).status_code == 202
            await front.subscribed()
            [subscription] = subscriptions_of(front.hub)
            assert not subscription.is_anonymous and subscription.queue_spec.arguments == {}
            assert (await front.post("publish", url=FEED)).status_code == 204

    async def test_anonymous_clients_are_limited(
        self, world: World, tmp_path: Path, callback: Callback
    ) -> None:
        async with open_front(
            world, tmp_path, max_per_anonymous_client=1, hub_user="guest"
        ) as front:
            asked = {"topic": NEWS_URL, "callback": callback.url, "lease_seconds": "864001"}
            assert (await front.post("subscribe", **asked)).status_code == 202
            await front.subscribed()
            [subscription] = subscriptions_of(front.hub)
            assert subscription.lease_seconds == 864_000
            info = await world.engine.queue("/", subscription.queue)
            assert info is not None and info.spec.arguments == ANONYMOUS_LIMITS
            assert (await front.post("subscribe", **asked)).status_code == 202  # a renewal
            answer = await front.post("subscribe", topic=FEED, callback=callback.url)
            assert "1 for one client" in reason(answer, 429)
            answer = await front.post("subscribe", topic=FEED, callback=callback.url, auth=GUEST)
            assert answer.status_code == 202

    async def test_credentials_are_needed_by_default(self, world: World, tmp_path: Path) -> None:
        async with open_front(world, tmp_path) as front:
            for mode in ("subscribe", "unsubscribe"):
                answer = await front.post(mode, topic=NEWS_URL, callback="http://a.b/")
                assert "hub_user" in reason(answer, 401)
                assert answer.headers["www-authenticate"].startswith("Basic")

    async def test_an_unknown_hub_user_is_refused(self, world: World, tmp_path: Path) -> None:
        async with open_front(world, tmp_path, hub_user="nobody") as front:
            answer = await front.post("subscribe", topic=NEWS_URL, callback="http://a.b/")
            assert "hub_user does not exist" in reason(answer, 401)

    async def test_read_is_needed(self, front: Front, callback: Callback) -> None:
        tony = ("tony", "secret")
        asked = {"callback": callback.url, "auth": tony}
        answer = await front.post("subscribe", topic=NEWS_URL, **asked)
        assert "read access to exchange 'news'" in reason(answer, 403)
        answer = await front.post("subscribe", topic="http://hub/endpoint/x/none", **asked)
        assert "read access" in reason(answer, 403)  # whether it is there or not
        await front.world.exchange("tony.x")
        answer = await front.post("subscribe", topic="http://hub/endpoint/x/tony.x", **asked)
        assert answer.status_code == 202
        await front.subscribed()
        assert subscriptions_of(front.hub)[0].owner == "tony"

    async def test_topic_permissions_hold(self, front: Front) -> None:
        front.world.users.set_topic_permission("guest", "/", "news", ".*", "^us")
        for topic in (NEWS_URL, "http://hub/endpoint/x/news"):
            answer = await front.post("subscribe", topic=topic, callback="http://a.b/")
            assert "topic" in reason(answer, 403)

    async def test_anonymous_clients_are_never_administrators(
        self, front: Front, callback: Callback
    ) -> None:
        front.world.users.set_permissions("tony", "/", "", "", "^news$")
        asked = {"topic": NEWS_URL, "callback": callback.url}
        await front.post("subscribe", **asked, auth=("tony", "secret"))
        await front.subscribed()
        [before] = subscriptions_of(front.hub)
        await self.ask_in_vain(front, asked)
        assert subscriptions_of(front.hub) == [before] and len(callback.verifications) == 1
        assert (await front.post("unsubscribe", **asked, auth=GUEST)).status_code == 202
        await front.subscribed(0)

    async def test_anonymous_clients_do_not_learn_of_subscriptions(
        self, front: Front, callback: Callback
    ) -> None:
        asked = {"topic": FEED, "callback": callback.url}
        await front.post("subscribe", **asked, auth=("tony", "secret"))
        await front.subscribed()
        await self.ask_in_vain(front, asked)
        assert len(callback.verifications) == 1

    async def ask_in_vain(self, front: Front, asked: dict[str, str]) -> None:
        """The answer is that to a request of which something comes."""
        for mode in ("subscribe", "unsubscribe"):
            answer = await front.post(mode, **asked)
            assert (answer.status_code, answer.json()["status"]) == (202, "pending")
        pending = front.hub.subscriptions._verifications
        await until(lambda: pending._count == 0, "end of both")


class TestTopicsOfOthers:
    async def test_a_renewal_by_a_user_leaves_a_subscription_anonymous(
        self, front: Front, callback: Callback
    ) -> None:
        asked = {"topic": FEED, "callback": callback.url}
        await front.post("subscribe", **asked)
        await front.subscribed()
        await front.post("subscribe", **asked, lease_seconds="60", auth=("tony", "secret"))
        await until(
            lambda: [one.lease_seconds for one in subscriptions_of(front.hub)] == [60], "renewal"
        )
        assert subscriptions_of(front.hub)[0].owner == ""
        assert (await front.post("subscribe", **asked)).status_code == 202

    async def test_a_changed_content_option_replaces_the_first(
        self, front: Front, callback: Callback
    ) -> None:
        asked = {"topic": FEED, "callback": callback.url}
        await front.post("subscribe", **asked, content="full")
        await front.subscribed()
        await front.post("subscribe", **asked, content="new")
        await until(
            lambda: [one.source.name for one in subscriptions_of(front.hub)] == [ENTRIES], "change"
        )
        bound = front.world.broker.vhosts["/"].exchanges[CONTENT].destinations
        await until(lambda: not bound, "end of the first")
        engine = front.world.engine
        for exchange in (CONTENT, ENTRIES):
            await engine.publish(None, "/", exchange, FEED, PLAIN, exchange.encode())
        await until(lambda: len(callback.deliveries) >= 1, "delivery")
        assert [one.body for one in callback.deliveries] == [ENTRIES.encode()]


class TestPublish:
    async def test_own_topics_need_no_fetch(
        self, front: Front, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pinged = record_pings(front, monkeypatch)
        answer = await front.post("publish", url=["http://a.b/%7Ex", NEWS_URL])
        assert answer.status_code == 204
        assert pinged == ["http://a.b/~x"]

    @pytest.mark.parametrize(
        ("urls", "told"),
        [
            ([], "hub.url: is required"),
            (["news"], "hub.url: "),
            ([FEED, "ftp://a.b/"], "hub.url: has the scheme 'ftp'"),
            ([",".join(f"http://a.b/{number}" for number in range(1_001))], "1001 times"),
        ],
    )
    async def test_bad_urls_are_refused(self, front: Front, urls: list[str], told: str) -> None:
        assert told in reason(await front.post("publish", url=urls), 400)


class TestContent:
    @pytest.fixture
    def published(
        self, front: Front, monkeypatch: pytest.MonkeyPatch
    ) -> list[tuple[str, bytes, str]]:
        published: list[tuple[str, bytes, str]] = []

        async def publish_content(url: str, body: bytes, content_type: str) -> None:
            published.append((url, body, content_type))

        monkeypatch.setattr(front.hub.topics, "publish_content", publish_content, raising=False)
        return published

    async def test_content_is_published_with_the_permission_to_write(
        self, front: Front, published: list[tuple[str, bytes, str]]
    ) -> None:
        asked = {"url": FEED, "content": "<feed>ü</feed>"}
        assert (await front.post("publish", **asked, auth=GUEST)).status_code == 204
        given = {**asked, "content_type": "application/atom+xml"}
        await front.post("publish", **given, auth=GUEST)
        body = "<feed>ü</feed>".encode()
        assert published == [(FEED, body, "application/xml"), (FEED, body, "application/atom+xml")]

    async def test_content_without_credentials_or_permission_is_refused(
        self, front: Front, published: list[tuple[str, bytes, str]]
    ) -> None:
        asked = {"url": FEED, "content": "<feed/>"}
        assert "hub_publisher_secret" in reason(await front.post("publish", **asked), 401)
        answer = await front.post("publish", **asked, auth=("tony", "secret"))
        assert "write access to exchange 'hub.topics'" in reason(answer, 403)
        answer = await front.post("publish", **{**asked, "url": NEWS_URL}, auth=GUEST)
        assert "is given with 0 URLs" in reason(answer, 400)
        answer = await front.post("publish", **{**asked, "url": [FEED, "http://c.d/"]}, auth=GUEST)
        assert "is given with 2 URLs" in reason(answer, 400)
        for wrong in ("text/xml\r\nX-Evil: 1", "text/xml\0"):
            answer = await front.post("publish", **asked, content_type=wrong, auth=GUEST)
            assert "control characters" in reason(answer, 400)
        assert published == []

    @pytest.mark.parametrize("method", ["sha1", "sha256", "sha512", ""])
    async def test_signed_content_is_published(
        self, world: World, tmp_path: Path, method: str
    ) -> None:
        async with open_front(world, tmp_path, hub_publisher_secret="s3cret") as front:
            published: list[str] = []

            async def publish_content(url: str, body: bytes, content_type: str) -> None:
                published.append(url)

            front.hub.topics.publish_content = publish_content  # type: ignore[method-assign]
            digest = hmac.digest(b"s3cret", b"<feed/>", method or "sha1").hex()
            signature = f"{method}={digest}" if method else digest
            asked = {"url": FEED, "content": "<feed/>", "signature": signature}
            assert (await front.post("publish", **asked)).status_code == 204
            wrong = {**asked, "content": "<feed />"}
            assert "is not the HMAC" in reason(await front.post("publish", **wrong), 403)
            reason(await front.post("publish", **{**asked, "signature": "md5=00"}), 403)
            assert published == [FEED]

    @pytest.mark.parametrize(
        ("body", "kind"),
        [
            (b"\n<rss/>", "application/xml"),
            (b" {}", "application/json"),
            (b"[1]", "application/json"),
            (b"hello", "text/plain"),
            (b"", "text/plain"),
        ],
    )
    def test_the_type_of_content_is_guessed(self, body: bytes, kind: str) -> None:
        assert content_type_of(body) == kind


class TestGet:
    async def test_description_of_the_hub(self, front: Front) -> None:
        answer = await front.http.get("/hub")
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert "WebSub hub" in answer.text
        page = await front.http.get("/hub", headers={"Accept": "text/html,*/*;q=0.8"})
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert "WebSub hub" in page.text
        assert (await front.http.head("/hub")).status_code == 200


def record_pings(front: Front, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    pinged: list[str] = []

    async def ping(urls: list[str]) -> None:
        pinged.extend(urls)

    monkeypatch.setattr(front.hub.topics, "ping", ping)
    return pinged
