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
from tests.hub.support import until
from tests.support.http import Answer, Callback
from warrenmq.app.routes.ping import content_type_of
from warrenmq.core.message.model import Properties
from warrenmq.core.server.listener import Listener
from warrenmq.hub.requests import Resource
from warrenmq.hub.service import Hub
from warrenmq.hub.settings import HubSettings
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
        await until(lambda: len(self.hub.subscriptions.all()) == count, f"{count} subscriptions")


@asynccontextmanager
async def open_front(world: World, directory: Path, **changed: Any) -> AsyncIterator[Front]:
    listener = Listener(world.broker)
    await listener.start([])
    await world.exchange("news")
    await world.queue("in")
    given = {"hub_foreign_topics": True, "hub_anonymous": True, **changed}
    settings = HubSettings(allow_loopback=True, base_urls=("http://hub",), **given)
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
    async def test_accepted_verified_and_delivered(self, front: Front, callback: Callback) -> None:
        answer = await front.post("subscribe", topic=NEWS_URL, callback=callback.url)
        assert (answer.status_code, answer.json()["status"]) == (202, "pending")
        await front.subscribed()
        [question] = callback.verifications
        assert question.query["hub.mode"] == "subscribe"
        assert question.query["hub.topic"] == NEWS_URL
        assert question.query["hub.lease_seconds"] == "864000"
        [subscription] = front.hub.subscriptions.all()
        assert subscription.source == Resource("/", "x", "news")
        assert (subscription.topic, subscription.topic_url) == ("eu.#", NEWS_URL)
        assert (subscription.owner, subscription.base_url) == ("guest", "http://hub")
        await front.http.post("/endpoint/x/news?hub.topic=eu.fr", content=b"bonjour", auth=GUEST)
        await until(lambda: len(callback.deliveries) == 1, "delivery")
        assert callback.deliveries[0].body == b"bonjour"

    @pytest.mark.parametrize("path", ["/base/hub", "/hub"])
    async def test_everywhere(self, front: Front, callback: Callback, path: str) -> None:
        async with front.world.client(auth=None, base_path="/base") as front.http:
            answer = await front.post("subscribe", topic=NEWS_URL, callback=callback.url, path=path)
        assert answer.status_code == 202

    async def test_deliveries_never_name_the_host_that_a_stranger_says(
        self, front: Front, callback: Callback
    ) -> None:
        front.http.headers["Host"] = "evil.example"
        for number, given in enumerate(({}, {"auth": GUEST})):
            asked = {"topic": NEWS_URL, "callback": f"{callback.url}/{number}"}
            assert (await front.post("subscribe", **asked, **given)).status_code == 202
        await front.subscribed(2)
        found = {one.is_anonymous: one.base_url for one in front.hub.subscriptions.all()}
        assert found == {True: "http://localhost:1", False: "http://evil.example"}

    async def test_below_a_base_path_of_that_name(self, front: Front) -> None:
        async with front.world.client(auth=None, base_path="/hub") as http:
            assert "WebSub hub" in (await http.get("/hub")).text
            assert "WebSub hub" in (await http.get("/hub/hub")).text
            assert (await http.get("/hub/")).text.startswith("Warren")

    async def test_the_answer_does_not_wait_for_the_callback(
        self, front: Front, callback: Callback
    ) -> None:
        callback.refusal = Answer(hang=True)
        answer = await front.post("subscribe", topic=NEWS_URL, callback=callback.url)
        assert answer.status_code == 202
        assert front.hub.subscriptions.all() == []

    async def test_a_client_of_0_3_gets_what_it_waits_for(
        self, front: Front, callback: Callback
    ) -> None:
        answer = await front.post(
            "subscribe", topic=NEWS_URL, callback=callback.url, verify="sync", verify_token="t&1"
        )
        assert answer.status_code == 202
        await front.subscribed()
        assert callback.verifications[0].query["hub.verify_token"] == "t&1"

    async def test_a_token_of_this_hub_is_only_shown_to_the_callback(
        self, front: Front, callback: Callback
    ) -> None:
        token = front.hub.shortcuts.generate_token(Resource("/", "q", "in"), "subscribe")
        await front.post("subscribe", topic=NEWS_URL, callback=callback.url, verify_token=token)
        await front.subscribed()
        assert callback.verifications[0].query["hub.verify_token"] == token

    async def test_options_and_unknown_parameters(self, front: Front, callback: Callback) -> None:
        wanted = {"signature_method": "sha512", "lease_seconds": "60", "secret": "s" * 199}
        answer = await front.post(
            "subscribe", topic=NEWS_URL, callback=callback.url, foo="bar", verify="x", **wanted
        )
        assert answer.status_code == 202
        await front.subscribed()
        [subscription] = front.hub.subscriptions.all()
        assert subscription.options.signature_method == "sha512"
        assert (subscription.lease_seconds, subscription.keys.secret) == (60, "s" * 199)

    async def test_a_queue(self, front: Front, callback: Callback) -> None:
        url = "http://hub/endpoint/q/in"
        await front.post("subscribe", topic=url, callback=callback.url)
        await front.subscribed()
        [subscription] = front.hub.subscriptions.all()
        assert (subscription.source, subscription.topic) == (Resource("/", "q", "in"), "")

    async def test_one_topic_and_callback_however_they_are_written(
        self, front: Front, callback: Callback
    ) -> None:
        for topic, path in ((NEWS_URL, "%7Ea"), (NEWS_URL.replace("eu", "%65u"), "~a")):
            await front.post("subscribe", topic=topic, callback=f"{callback.url}/{path}")
            await until(
                lambda topic=topic: (
                    callback.verifications[-1:] != []  # type: ignore[misc]
                    and callback.verifications[-1].query["hub.topic"] == topic
                ),
                "question",
            )
        await until(
            lambda: [one.topic_url for one in front.hub.subscriptions.all()] == [topic], "renewal"
        )
        assert callback.verifications[0].raw_path.startswith("/callback/%7Ea?")
        assert callback.verifications[1].raw_path.startswith("/callback/~a?")


class TestRefusals:
    @pytest.mark.parametrize(
        ("changed", "status", "told"),
        [
            ({"topic": None}, 400, "hub.topic: is required"),
            ({"topic": "eu.#"}, 400, "hub.topic: "),
            ({"topic": "ftp://a.b/"}, 400, "hub.topic: has the scheme 'ftp'"),
            ({"topic": NEWS_URL + "#x"}, 400, "hub.topic: has a fragment"),
            ({"topic": "http://a.b/" + "x" * 2_048}, 400, "hub.topic: is 2059 characters long"),
            ({"topic": NEWS_URL + "x" * 256}, 400, "hub.topic: is 260 bytes long"),
            ({"topic": "http://hub/endpoint/x/none"}, 404, "none"),
            ({"topic": "http://hub/nothing"}, 404, "none of an exchange or queue"),
            ({"topic": "http://hub/none/endpoint/x/news"}, 404, "no vhost 'none'"),
            ({"topic": "http://hub/closed/endpoint/x/news"}, 403, "vhost 'closed'"),
            ({"topic": FEED, "content": "half"}, 400, "hub.content: is unknown"),
            ({"callback": None}, 400, "hub.callback: is required"),
            ({"callback": "ftp://a.b/"}, 422, "hub.callback: has the scheme 'ftp'"),
            ({"callback": "localhost:9000/cb"}, 422, "hub.callback: has no scheme"),
            ({"callback": "http://me:you@a.b/"}, 422, "user information"),
            ({"callback": "http://10.0.0.1/"}, 422, "not public"),
            ({"callback": "http://hub/endpoint/q/in"}, 422, "own address"),
            ({"secret": "s" * 200}, 400, "hub.secret: is 200 bytes long (right: 199 bytes)"),
            ({"lease_seconds": "0"}, 400, "given: 0; right: 1 to 864000 seconds"),
            ({"lease_seconds": "-1"}, 400, "hub.lease_seconds: is out of bounds"),
            ({"lease_seconds": "soon"}, 400, "hub.lease_seconds: is out of bounds"),
            ({"lease_seconds": "1000000000000"}, 400, "hub.lease_seconds: is out of bounds"),
            ({"signature_method": "md5"}, 400, "hub.signature_method: is unknown"),
        ],
    )
    async def test_parameters(
        self, front: Front, changed: dict[str, str | None], status: int, told: str
    ) -> None:
        form = {"topic": NEWS_URL, "callback": "http://a.b/cb", **changed}
        given = {name: value for name, value in form.items() if value is not None}
        text = reason(await front.post("subscribe", **given), status)
        assert told in text
        assert "you@" not in text

    @pytest.mark.parametrize(
        ("mode", "told"),
        [(None, "is required"), ("", "is required"), ("Subscribe", "is unknown (given: Subscribe")],
    )
    async def test_modes(self, front: Front, mode: str | None, told: str) -> None:
        text = reason(await front.post(mode, topic=NEWS_URL, callback="http://a.b/"), 400)
        assert f"hub.mode: {told}" in text
        assert "right: subscribe, unsubscribe or publish" in text

    @pytest.mark.parametrize("content_type", ["text/plain", "application/json", ""])
    async def test_content_types(self, front: Front, content_type: str) -> None:
        headers = {"Content-Type": content_type}
        reason(await front.http.post("/hub", content=b"a=b", headers=headers), 415)

    async def test_a_charset_is_fine(self, front: Front, callback: Callback) -> None:
        headers = {"Content-Type": "Application/X-WWW-Form-URLencoded; charset=UTF-8"}
        form = httpx.QueryParams(
            {"hub.mode": "subscribe", "hub.topic": NEWS_URL, "hub.callback": callback.url}
        )
        answer = await front.http.post("/hub", content=str(form).encode(), headers=headers)
        assert answer.status_code == 202

    async def test_bodies(self, front: Front) -> None:
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

    async def test_methods(self, front: Front) -> None:
        for method in ("PUT", "DELETE", "PATCH"):
            answer = await front.http.request(method, "/hub")
            reason(answer, 405)
            assert answer.headers["allow"] == ALLOWED

    async def test_the_query_is_no_form(self, front: Front) -> None:
        query = {"hub.mode": "publish", "hub.url": "http://a.b/"}
        assert "hub.mode: is required" in reason(await front.http.post("/hub", params=query), 400)

    async def test_too_many(self, world: World, tmp_path: Path, callback: Callback) -> None:
        callback.refusal = Answer(hang=True)
        few = {"max_pending_per_domain": 1, "hub_user": "guest", "verify_timeout_s": 1.0}
        async with open_front(world, tmp_path, **few) as front:
            asked = {"topic": NEWS_URL, "callback": callback.url}
            assert (await front.post("subscribe", **asked)).status_code == 202
            answer = await front.post("subscribe", **asked)
            assert "too many verifications" in reason(answer, 503)
            assert answer.headers["retry-after"] == "5"


class TestWho:
    async def test_topics_of_others_are_off_by_default(
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

    async def test_topics_of_others_may_be_for_users_alone(
        self, world: World, tmp_path: Path, callback: Callback
    ) -> None:
        asked = {"topic": FEED, "callback": callback.url}
        async with open_front(world, tmp_path, hub_anonymous=False) as front:
            assert "hub_anonymous" in reason(await front.post("subscribe", **asked), 401)
            assert (await front.post("subscribe", **asked, auth=GUEST)).status_code == 202
            await front.subscribed()
            [subscription] = front.hub.subscriptions.all()
            assert not subscription.is_anonymous and subscription.queue_spec.arguments == {}
            assert (await front.post("publish", url=FEED)).status_code == 204

    async def test_who_comes_without_credentials_is_limited(
        self, world: World, tmp_path: Path, callback: Callback
    ) -> None:
        async with open_front(
            world, tmp_path, max_per_anonymous_client=1, hub_user="guest"
        ) as front:
            for topic in (FEED, NEWS_URL):
                asked = {"topic": topic, "callback": callback.url}
                answer = await front.post("subscribe", **asked, lease_seconds="864001")
                assert "1 to 864000 seconds" in reason(answer, 400)
            assert (await front.post("subscribe", **asked)).status_code == 202
            await front.subscribed()
            [subscription] = front.hub.subscriptions.all()
            info = await world.engine.queue("/", subscription.queue)
            assert info is not None and info.spec.arguments == ANONYMOUS_LIMITS
            assert (await front.post("subscribe", **asked)).status_code == 202  # a renewal
            answer = await front.post("subscribe", topic=FEED, callback=callback.url)
            assert "1 for one client" in reason(answer, 429)
            answer = await front.post("subscribe", topic=FEED, callback=callback.url, auth=GUEST)
            assert answer.status_code == 202

    async def test_nobody_is_let_in_by_default(self, world: World, tmp_path: Path) -> None:
        async with open_front(world, tmp_path) as front:
            for mode in ("subscribe", "unsubscribe"):
                answer = await front.post(mode, topic=NEWS_URL, callback="http://a.b/")
                assert "hub_user" in reason(answer, 401)
                assert answer.headers["www-authenticate"].startswith("Basic")

    async def test_a_setting_that_names_nobody(self, world: World, tmp_path: Path) -> None:
        async with open_front(world, tmp_path, hub_user="nobody") as front:
            answer = await front.post("subscribe", topic=NEWS_URL, callback="http://a.b/")
            assert "hub_user does not exist" in reason(answer, 401)

    async def test_wrong_credentials_are_wrong_everywhere(self, front: Front) -> None:
        for topic in (NEWS_URL, FEED):
            wrong = ("guest", "wrong")
            answer = await front.post("subscribe", topic=topic, callback="http://a.b/", auth=wrong)
            assert "wrong user or password" in reason(answer, 401)

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
        assert front.hub.subscriptions.all()[0].owner == "tony"

    async def test_topic_permissions_hold(self, front: Front) -> None:
        front.world.users.set_topic_permission("guest", "/", "news", ".*", "^us")
        for topic in (NEWS_URL, "http://hub/endpoint/x/news"):
            answer = await front.post("subscribe", topic=topic, callback="http://a.b/")
            assert "topic" in reason(answer, 403)

    async def test_anothers_subscription(self, front: Front, callback: Callback) -> None:
        front.world.users.set_permissions("tony", "/", "", "", "^news$")
        tony = ("tony", "secret")
        asked = {"topic": NEWS_URL, "callback": callback.url}
        await front.post("subscribe", **asked, auth=GUEST)
        await front.subscribed()
        for mode in ("subscribe", "unsubscribe"):
            text = reason(await front.post(mode, **asked, auth=tony), 403)
            assert "another user's" in text and "guest" not in text
        assert len(callback.verifications) == 1

    async def test_without_credentials_nobody_is_administrator(
        self, front: Front, callback: Callback
    ) -> None:
        """Also where the user of the setting is one."""
        front.world.users.set_permissions("tony", "/", "", "", "^news$")
        asked = {"topic": NEWS_URL, "callback": callback.url}
        await front.post("subscribe", **asked, auth=("tony", "secret"))
        await front.subscribed()
        [before] = front.hub.subscriptions.all()
        await self.ask_in_vain(front, asked)
        assert front.hub.subscriptions.all() == [before] and len(callback.verifications) == 1
        assert (await front.post("unsubscribe", **asked, auth=GUEST)).status_code == 202
        await front.subscribed(0)

    async def test_without_credentials_nobody_learns_who_subscribes(
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


class TestUnsubscribe:
    async def test_verified_alike(self, front: Front, callback: Callback) -> None:
        asked = {"topic": NEWS_URL, "callback": callback.url}
        await front.post("subscribe", **asked)
        await front.subscribed()
        callback.refusal = Answer(404)
        assert (await front.post("unsubscribe", **asked)).status_code == 202
        await until(lambda: len(callback.verifications) == 2, "question")
        assert len(front.hub.subscriptions.all()) == 1
        callback.refusal = None
        assert (await front.post("unsubscribe", **asked, lease_seconds="0")).status_code == 202
        await front.subscribed(0)
        question = callback.verifications[-1].query
        assert question["hub.mode"] == "unsubscribe"
        assert "hub.lease_seconds" not in question

    async def test_what_was_never_subscribed_asks_nobody(
        self, front: Front, callback: Callback
    ) -> None:
        asked = {"topic": "http://hub/endpoint/x/none", "callback": callback.url}
        assert (await front.post("unsubscribe", **asked)).status_code == 202
        await front.post("subscribe", topic=NEWS_URL, callback=callback.url)
        await front.subscribed()
        assert len(callback.verifications) == 1

    async def test_overtaking_its_subscribe_is_impossible(
        self, front: Front, callback: Callback
    ) -> None:
        asked = {"topic": NEWS_URL, "callback": callback.url}
        await front.post("subscribe", **asked)
        assert (await front.post("unsubscribe", **asked)).status_code == 202
        await until(lambda: len(callback.verifications) == 2, "questions")
        await front.subscribed(0)
        modes = [one.query["hub.mode"] for one in callback.verifications]
        assert modes == ["subscribe", "unsubscribe"]


class TestTopicsOfOthers:
    @pytest.mark.parametrize(("content", "exchange"), [("full", CONTENT), ("new", ENTRIES)])
    async def test_anybody_may(
        self, front: Front, callback: Callback, content: str, exchange: str
    ) -> None:
        asked = {"topic": FEED, "callback": callback.url, "content": content}
        assert (await front.post("subscribe", **asked)).status_code == 202
        await front.subscribed()
        [subscription] = front.hub.subscriptions.all()
        assert subscription.source == Resource("/", "x", exchange)
        assert (subscription.topic, subscription.owner) == (FEED, "")
        assert (await front.post("unsubscribe", **asked)).status_code == 202
        await front.subscribed(0)

    async def test_the_owner_is_who_came_with_credentials(
        self, front: Front, callback: Callback
    ) -> None:
        asked = {"topic": FEED, "callback": callback.url}
        await front.post("subscribe", **asked, auth=("tony", "secret"))
        await front.subscribed()
        assert front.hub.subscriptions.all()[0].owner == "tony"
        await front.post("unsubscribe", **asked, auth=GUEST)  # an administrator
        await front.subscribed(0)

    async def test_what_is_everybodys_stays_so(self, front: Front, callback: Callback) -> None:
        """Else whoever has credentials could keep a subscriber from renewing."""
        asked = {"topic": FEED, "callback": callback.url}
        await front.post("subscribe", **asked)
        await front.subscribed()
        await front.post("subscribe", **asked, lease_seconds="60", auth=("tony", "secret"))
        await until(
            lambda: [one.lease_seconds for one in front.hub.subscriptions.all()] == [60], "renewal"
        )
        assert front.hub.subscriptions.all()[0].owner == ""
        assert (await front.post("subscribe", **asked)).status_code == 202

    async def test_another_content_takes_the_place_of_the_first(
        self, front: Front, callback: Callback
    ) -> None:
        asked = {"topic": FEED, "callback": callback.url}
        await front.post("subscribe", **asked, content="full")
        await front.subscribed()
        await front.post("subscribe", **asked, content="new")
        await until(
            lambda: [one.source.name for one in front.hub.subscriptions.all()] == [ENTRIES],
            "change",
        )
        pending = front.hub.subscriptions._verifications
        await until(lambda: pending._count == 0, "end of the renewal")
        engine = front.world.engine
        for exchange in (CONTENT, ENTRIES):
            await engine.publish("/", exchange, FEED, PLAIN, exchange.encode())
        await until(lambda: len(callback.deliveries) >= 1, "delivery")
        assert [one.body for one in callback.deliveries] == [ENTRIES.encode()]


class TestPublish:
    @pytest.mark.parametrize(
        "body",
        [
            {"hub.url": [FEED]},
            {"hub.url": [FEED, "http://c.d/"]},
            {"hub.topic": [FEED]},
            {"hub.url[]": [FEED, "http://c.d/?x=1,2"]},
            {"hub.url": [f"{FEED}, http://c.d/?x=1,2,http://e.f/"]},
            {"hub.url": [FEED], "hub.foo": ["bar"]},
        ],
    )
    async def test_every_known_form(
        self, front: Front, monkeypatch: pytest.MonkeyPatch, body: dict[str, list[str]]
    ) -> None:
        pinged = record_pings(front, monkeypatch)
        answer = await front.http.post("/hub", data={"hub.mode": "publish", **body})
        assert (answer.status_code, answer.content) == (204, b"")
        urls = [url for name, values in body.items() if "foo" not in name for url in values]
        expected = ",".join(urls).replace(", ", ",")
        assert ",".join(pinged) == expected and pinged[0] == FEED

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
    async def test_refused(self, front: Front, urls: list[str], told: str) -> None:
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

    async def test_with_rights(self, front: Front, published: list[tuple[str, bytes, str]]) -> None:
        asked = {"url": FEED, "content": "<feed>ü</feed>"}
        assert (await front.post("publish", **asked, auth=GUEST)).status_code == 204
        given = {**asked, "content_type": "application/atom+xml"}
        await front.post("publish", **given, auth=GUEST)
        body = "<feed>ü</feed>".encode()
        assert published == [
            (FEED, body, "application/xml"),
            (FEED, body, "application/atom+xml"),
        ]

    async def test_without(self, front: Front, published: list[tuple[str, bytes, str]]) -> None:
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
    async def test_signed(self, world: World, tmp_path: Path, method: str) -> None:
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
    def test_its_type(self, body: bytes, kind: str) -> None:
        assert content_type_of(body) == kind


class TestGet:
    async def test_says_what_it_is(self, front: Front) -> None:
        answer = await front.http.get("/hub")
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert "WebSub hub" in answer.text
        page = await front.http.get("/hub", headers={"Accept": "text/html,*/*;q=0.8"})
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert "WebSub hub" in page.text
        assert (await front.http.head("/hub")).status_code == 200


async def test_it_is_described(http: httpx.AsyncClient) -> None:
    path = (await http.get("/openapi.json")).json()["paths"]["/hub"]
    body = path["post"]["requestBody"]["content"]["application/x-www-form-urlencoded"]
    fields = body["schema"]["properties"]
    assert fields["hub.mode"]["enum"] == ["subscribe", "unsubscribe", "publish"]
    assert {"hub.topic", "hub.callback", "hub.url", "hub.secret"} <= fields.keys()
    assert "/hub" in (await http.get("/")).text


async def test_moved(world: World, tmp_path: Path) -> None:
    async with open_front(world, tmp_path, hub_moved_to="https://new.example/hub") as front:
        for mode in ("subscribe", "publish", None):
            answer = await front.post(mode, topic=NEWS_URL)
            assert answer.status_code == 308
            assert answer.headers["location"] == "https://new.example/hub"


def record_pings(front: Front, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    pinged: list[str] = []

    async def ping(urls: list[str]) -> None:
        pinged.extend(urls)

    monkeypatch.setattr(front.hub.topics, "ping", ping)
    return pinged
