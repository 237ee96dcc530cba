"""External topics from the ping to the queue: real HTTP, the embedded engine, real rows."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.hub.support import House, deliveries, request, until
from tests.hub.topics.feeds import ATOM_TYPE, atom
from tests.support.http import Answer, Callback
from warrenmq.core.clock import ManualClock
from warrenmq.hub.engine.port import BindingSpec, ExchangeSpec, QueueSpec
from warrenmq.hub.errors import BadRequest, NotDistributed, StorageFailed
from warrenmq.hub.requests import Resource
from warrenmq.hub.topics import fetch_scheduler, updating
from warrenmq.hub.topics.names import CONTENT, ENTRIES, topic_key
from warrenmq.hub.topics.topic import Topic

FULL = QueueSpec("full", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
FAST = {"fetch_gap_s": 0.0}


@pytest.fixture
async def house(house: House) -> House:
    """With pings that are fetched at once, and a queue `all` for whole content."""
    await house.restart(**FAST)
    for name in (CONTENT, ENTRIES):
        await house.engine.declare_exchange("/", ExchangeSpec(name, "direct"))
    await house.engine.declare_queue("/", QueueSpec("all"))
    await house.engine.declare_queue("/", QueueSpec("new"))
    return house


async def bind(house: House, url: str, exchange: str = CONTENT, queue: str = "all") -> None:
    await house.engine.bind("/", BindingSpec(exchange, queue, routing_key=topic_key(url)))


async def unbind(house: House, url: str) -> None:
    await house.engine.unbind("/", BindingSpec(CONTENT, "all", routing_key=topic_key(url)))


def serve(callback: Callback, body: bytes, kind: str = "text/plain", **headers: str) -> None:
    callback.default = Answer(headers={"Content-Type": kind, **headers}, body=body)


async def settled(house: House, url: str) -> Topic:
    """The topic once it is not due any more."""
    found: list[Topic] = []

    async def is_settled() -> bool:
        topic = await house.hub.topics.topic(url)
        found[:] = [topic] if topic is not None and topic.due_at is None else []
        return bool(found)

    await until(is_settled, "settled topic")
    return found[0]


async def ping(house: House, url: str) -> Topic:
    await house.hub.topics.ping([url])
    return await settled(house, url)


async def failed(house: House, url: str, failures: int = 1) -> Topic:
    found: list[Topic] = []

    async def is_failed() -> bool:
        topic = await house.hub.topics.topic(url)
        found[:] = [topic] if topic is not None and topic.failures == failures else []
        return bool(found)

    await until(is_failed, f"failure {failures}")
    return found[0]


async def bodies(house: House, queue: str, count: int) -> list[bytes]:
    return [one.message.body for one in await house.take(queue, count)]


class TestDistribution:
    async def test_content_comes_as_its_publisher_serves_it(
        self, house: House, callback: Callback
    ) -> None:
        serve(callback, b"\xff\r\n\0", "text/plain; Charset=x")
        await bind(house, callback.url)
        topic = await ping(house, callback.url)
        [delivery] = await house.take("all", 1)
        message = delivery.message
        assert (message.body, message.routing_key) == (b"\xff\r\n\0", callback.url)
        assert message.exchange == CONTENT
        assert message.properties.content_type == "text/plain; Charset=x"
        assert message.properties.delivery_mode == 2
        assert message.properties.headers == {"x-hub-topic-url": callback.url}
        assert topic.failures == 0 and topic.changed_at == topic.checked_at > 0

    async def test_only_changes_are_distributed(self, house: House, callback: Callback) -> None:
        await bind(house, callback.url)
        for body in (b"1", b"1", b"2"):
            serve(callback, body)
            await ping(house, callback.url)
        assert await bodies(house, "all", 2) == [b"1", b"2"]
        assert await house.depth("all") == 0 and len(callback.requests) == 3

    async def test_only_what_is_new_is_asked_for(self, house: House, callback: Callback) -> None:
        serve(callback, b"1", ETag='"one"')
        await bind(house, callback.url)
        await ping(house, callback.url)
        callback.default = Answer(304)
        topic = await ping(house, callback.url)
        assert callback.requests[1].headers["If-None-Match"] == '"one"'
        assert topic.etag == '"one"' and topic.checked_at > topic.changed_at
        assert await house.depth("all") == 1

    async def test_a_long_url_has_a_digest_for_a_key(
        self, house: House, callback: Callback
    ) -> None:
        url = callback.url + "?" + "a" * 1_000
        serve(callback, b"1")
        await bind(house, url)
        await ping(house, url)
        assert (await house.take("all", 1))[0].message.routing_key == topic_key(url) != url

    async def test_spellings_of_a_url_are_one_topic(self, house: House, callback: Callback) -> None:
        serve(callback, b"1")
        await bind(house, callback.url + "/~a")
        await ping(house, callback.url + "/%7Ea")
        assert await house.depth("all") == 1

    async def test_a_webhook_gets_it(self, house: House, callback: Callback) -> None:
        with Callback() as publisher:
            serve(publisher, b"1", "text/css")
            await subscribe(house, callback, publisher.url)
            await deliveries(callback, 1)
            serve(publisher, b"2", "text/css")
            await ping(house, publisher.url)
        delivered = (await deliveries(callback, 2))[1]
        assert (delivered.body, delivered.headers["Content-Type"]) == (b"2", "text/css")


class TestEntries:
    async def test_new_and_changed_entries_alone(self, house: House, callback: Callback) -> None:
        await bind(house, callback.url)
        serve(callback, atom(("1", "a"), ("2", "b")), ATOM_TYPE)
        await ping(house, callback.url)
        await bind(house, callback.url, ENTRIES, "new")  # the digests were kept before
        second = atom(("3", "c"), ("1", "a"), ("2", "changed"), updated="2027")
        serve(callback, second, ATOM_TYPE)
        await ping(house, callback.url)
        [delivery] = await house.take("new", 1)
        body = delivery.message.body
        assert b">3<" in body and b"changed" in body and b">1<" not in body
        assert delivery.message.properties.content_type == ATOM_TYPE
        assert (await bodies(house, "all", 2))[1] == second

    async def test_nothing_new_is_nothing(self, house: House, callback: Callback) -> None:
        await bind(house, callback.url)
        await bind(house, callback.url, ENTRIES, "new")
        for updated in ("2026", "2027"):
            serve(callback, atom(("1", "a"), updated=updated), ATOM_TYPE)
            await ping(house, callback.url)
        assert (await house.depth("all"), await house.depth("new")) == (2, 1)

    async def test_what_is_no_feed_comes_whole(self, house: House, callback: Callback) -> None:
        await bind(house, callback.url, ENTRIES, "new")
        for body in (b"1", b"2"):
            serve(callback, body)
            await ping(house, callback.url)
        assert await bodies(house, "new", 2) == [b"1", b"2"]


class TestPings:
    async def test_a_flood_for_nobody_costs_nothing(self, house: House, callback: Callback) -> None:
        await house.hub.topics.ping([f"{callback.url}?{number}" for number in range(1_000)])
        assert await house.hub.topics.all() == [] and callback.requests == []
        assert not (house.directory / "hub.sqlite3").exists()

    async def test_pings_meanwhile_are_one(self, house: House, callback: Callback) -> None:
        callback.default = Answer(hang=True)
        await bind(house, callback.url)
        await house.hub.topics.ping([callback.url])
        await until(lambda: len(callback.requests) == 1, "request")
        await asyncio.gather(*(house.hub.topics.ping([callback.url]) for _ in range(50)))
        assert len(callback.requests) == 1
        serve(callback, b"1")
        # The hub that hangs on the first answer is stopped: what it was pinged for is durable.
        await house.restart(**FAST)
        await settled(house, callback.url)
        assert len(callback.requests) == 2 and await house.depth("all") == 1

    async def test_a_ping_during_a_fetch_makes_one_more(
        self, house: House, callback: Callback, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        go = asyncio.Event()
        fetch = house.hub.topics._source.fetch
        asked = 0

        async def slow(*given: Any, **named: Any) -> Any:
            nonlocal asked
            asked += 1
            fetched = await fetch(*given, **named)
            await go.wait()
            return fetched

        monkeypatch.setattr(house.hub.topics._source, "fetch", slow)
        serve(callback, b"old")
        await bind(house, callback.url)
        await house.hub.topics.ping([callback.url])
        await until(lambda: len(callback.requests) == 1, "request")
        serve(callback, b"new")
        for _ in range(3):
            await house.hub.topics.ping([callback.url])
        go.set()
        await settled(house, callback.url)
        assert await bodies(house, "all", 2) == [b"old", b"new"]
        assert asked == 2

    async def test_fetches_keep_apart(self, house: House, callback: Callback) -> None:
        house.clock = ManualClock()
        await house.restart(fetch_gap_s=5.0)
        serve(callback, b"1")
        await bind(house, callback.url)
        await ping(house, callback.url)
        await house.hub.topics.ping([callback.url])
        advance(house, 4.9)
        assert len(house.hub.topics._scheduler._deadlines) == 2  # it, and the sweep
        advance(house, 0.1)
        await settled(house, callback.url)
        assert len(callback.requests) == 2

    async def test_what_was_pinged_outlives_the_hub(self, house: House, callback: Callback) -> None:
        house.clock = ManualClock()
        await house.restart(fetch_gap_s=5.0)
        serve(callback, b"1")
        await bind(house, callback.url)
        await ping(house, callback.url)
        serve(callback, b"2")
        await house.hub.topics.ping([callback.url])  # not before 5 s
        await house.restart(fetch_gap_s=5.0)
        await settled(house, callback.url)
        assert await bodies(house, "all", 2) == [b"1", b"2"]


def advance(house: House, seconds: float) -> None:
    assert isinstance(house.clock, ManualClock)
    house.clock.advance(round(seconds * 1_000))
    house.hub.topics._scheduler.begin_due()


class TestFailures:
    @pytest.fixture(autouse=True)
    async def clocked(self, house: House, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(updating, "SPREAD", 0.0)
        house.clock = ManualClock()
        await house.restart(**FAST)

    async def test_it_is_tried_again_a_few_times(self, house: House, callback: Callback) -> None:
        callback.default = Answer(500)
        await bind(house, callback.url)
        await house.hub.topics.ping([callback.url])
        for failures, wait_s in enumerate(updating.RETRIES_S, 1):
            topic = await failed(house, callback.url, failures)
            assert "answered 500" in topic.error and topic.due_at == topic.checked_at + wait_s
            advance(house, wait_s - 0.001)
            assert len(callback.requests) == failures
            advance(house, 0.001)
        topic = await failed(house, callback.url, 4)
        assert topic.due_at is None and len(callback.requests) == 4
        await house.hub.topics.ping([callback.url])  # there is news again
        topic = await failed(house, callback.url, 5)
        assert topic.due_at == topic.checked_at + updating.RETRIES_S[0]

    async def test_a_new_ping_is_a_new_beginning(self, house: House, callback: Callback) -> None:
        callback.default = Answer(500)
        await bind(house, callback.url)
        await house.hub.topics.ping([callback.url])
        await failed(house, callback.url)
        serve(callback, b"1")
        topic = await ping(house, callback.url)  # without waiting for the retry
        assert (topic.failures, topic.error) == (0, "") and await house.depth("all") == 1

    async def test_who_wants_to_be_left_alone_is(self, house: House, callback: Callback) -> None:
        other = callback.url + "?other"
        await bind(house, callback.url)
        await bind(house, other)
        callback.default = Answer(503, headers={"Retry-After": "600"})
        await house.hub.topics.ping([callback.url])
        topic = await failed(house, callback.url)
        assert topic.due_at == topic.not_before == topic.checked_at + 600
        serve(callback, b"1")
        for _ in range(2):
            await house.hub.topics.ping([callback.url])
            await ping(house, other)  # what is due by now is fetched before that
            await house.restart(**FAST)
        advance(house, 599.9)
        await ping(house, other)
        paths = [one.raw_path for one in callback.requests]
        assert paths == ["/callback", *["/callback?other"] * 3]
        advance(house, 0.1)
        await settled(house, callback.url)
        assert len(callback.requests) == 5

    async def test_what_is_gone_is_not_asked_for_again(
        self, house: House, callback: Callback
    ) -> None:
        callback.default = Answer(410)
        await bind(house, callback.url)
        topic = await ping(house, callback.url)
        assert (topic.failures, topic.error) == (1, "its server answered 410")

    async def test_empty_content_is_a_failure(self, house: House, callback: Callback) -> None:
        serve(callback, b"")
        await bind(house, callback.url)
        await house.hub.topics.ping([callback.url])
        assert "empty" in (await failed(house, callback.url)).error

    async def test_content_that_was_not_taken_is_not_known(
        self, house: House, callback: Callback
    ) -> None:
        await house.engine.declare_queue("/", FULL)
        await bind(house, callback.url, queue="full")
        serve(callback, b"1")
        await house.hub.topics.ping([callback.url])
        topic = await failed(house, callback.url)
        assert "a queue has not taken" in topic.error and topic.digest == ""
        await house.engine.delete_queue("/", "full")
        await bind(house, callback.url)
        assert (await ping(house, callback.url)).digest != ""
        assert await bodies(house, "all", 1) == [b"1"]

    async def test_a_database_that_fails_costs_a_repetition_and_no_content(
        self, house: House, callback: Callback, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        serve(callback, b"1")
        await bind(house, callback.url)
        rows = await house.hub.topics._rows.get()
        put, refused = rows.put, asyncio.Event()

        async def refuse(*_: object) -> None:
            refused.set()
            raise StorageFailed("can't be reached now", field="database")

        monkeypatch.setattr(rows, "put", refuse)
        await house.hub.topics.ping([callback.url])
        await refused.wait()
        monkeypatch.setattr(rows, "put", put)
        advance(house, fetch_scheduler.STORAGE_AGAIN_S)
        await settled(house, callback.url)
        assert await bodies(house, "all", 2) == [b"1", b"1"]


class TestNewSubscribers:
    async def test_a_subscription_gets_what_is_there_by_then(
        self, house: House, callback: Callback
    ) -> None:
        """Its subscriber may have looked before the last change."""
        with Callback() as publisher:
            serve(publisher, b"2")
            await subscribe(house, callback, publisher.url)
            [delivery] = await deliveries(callback, 1)
            assert delivery.body == b"2"
            await settled(house, publisher.url)
            assert await new_subscribers(house) == {}

    async def test_one_that_comes_later_gets_it_alone(
        self, house: House, callback: Callback
    ) -> None:
        with Callback() as publisher, Callback() as later:
            serve(publisher, atom(("1", "a")), ATOM_TYPE, ETag='"1"')
            await subscribe(house, callback, publisher.url)
            await deliveries(callback, 1)
            await subscribe(house, later, publisher.url, ENTRIES)
            assert [one.body for one in await deliveries(later, 1)] == [atom(("1", "a"))]
            both = atom(("1", "a"), ("2", "b"))
            serve(publisher, both, ATOM_TYPE)
            await ping(house, publisher.url)
            assert (await deliveries(callback, 2))[1].body == both
            assert b">1<" not in (await deliveries(later, 2))[1].body

    async def test_what_changes_as_one_comes_reaches_both(
        self, house: House, callback: Callback
    ) -> None:
        with Callback() as publisher, Callback() as later:
            serve(publisher, atom(("1", "a")), ATOM_TYPE)
            await subscribe(house, callback, publisher.url)
            await deliveries(callback, 1)
            both = atom(("1", "a"), ("2", "b"))
            serve(publisher, both, ATOM_TYPE)
            await subscribe(house, later, publisher.url, ENTRIES)
            assert (await deliveries(callback, 2))[1].body == both
            assert (await deliveries(later, 1))[0].body == both

    async def test_a_renewal_gets_nothing_again(self, house: House, callback: Callback) -> None:
        with Callback() as publisher:
            serve(publisher, b"1")
            await subscribe(house, callback, publisher.url)
            await deliveries(callback, 1)
            await subscribe(house, callback, publisher.url, lease_seconds="60")
            await until(
                lambda: house.hub.subscriptions.all()[0].lease_seconds == 60, "renewed lease"
            )
            serve(publisher, b"2")
            await ping(house, publisher.url)
            assert [one.body for one in await deliveries(callback, 2)] == [b"1", b"2"]

    @pytest.mark.parametrize("answer", [Answer(500), Answer(hang=True)], ids=["fails", "hangs"])
    async def test_it_is_remembered_until_there_is_something(
        self, house: House, callback: Callback, answer: Answer
    ) -> None:
        with Callback() as publisher, Callback() as later:
            serve(publisher, b"1")
            await subscribe(house, callback, publisher.url)
            await deliveries(callback, 1)
            publisher.default = answer
            asked = len(publisher.requests)
            await subscribe(house, later, publisher.url)
            await until(lambda: len(publisher.requests) > asked, "request")
            serve(publisher, b"1")
            await house.restart(**FAST)
            await ping(house, publisher.url)
            assert [one.body for one in await deliveries(later, 1)] == [b"1"]
            assert len(callback.deliveries) == 1

    async def test_one_that_left_meanwhile_is_forgotten(
        self, house: House, callback: Callback
    ) -> None:
        serve(callback, b"1")
        await bind(house, callback.url)
        async with house.hub.topics.first_content(callback.url, "nobody's"):
            assert await new_subscribers(house) == {callback.url: ["nobody's"]}
        await settled(house, callback.url)
        assert await new_subscribers(house) == {}

    async def test_the_exchanges_are_there_for_the_first(
        self, house: House, callback: Callback
    ) -> None:
        for name in (CONTENT, ENTRIES):
            await house.engine.delete_exchange("/", name)
        with Callback() as publisher:
            serve(publisher, b"1")
            await house.hub.topics.ping([publisher.url])
            await subscribe(house, callback, publisher.url)
            await deliveries(callback, 1)
        for name in (CONTENT, ENTRIES):
            spec = await house.engine.exchange("/", name)
            assert spec is not None and (spec.type, spec.durable) == ("direct", True)


async def new_subscribers(house: House) -> dict[str, list[str]]:
    return await (await house.hub.topics._rows.get()).new_subscribers()


async def subscribe(
    house: House, callback: Callback, url: str, exchange: str = CONTENT, **given: Any
) -> None:
    source = Resource("/", "x", exchange)
    wish = request(source, callback.url, topic_key(url), topic_url=url, **given)
    await house.hub.subscriptions.subscribe(wish)


class TestForgetting:
    async def test_nobody_is_bound_any_more(self, house: House, callback: Callback) -> None:
        house.clock = ManualClock()
        await house.restart(fetch_gap_s=5.0)
        serve(callback, b"1")
        await bind(house, callback.url)
        await ping(house, callback.url)
        await house.hub.topics.ping([callback.url])
        await unbind(house, callback.url)
        advance(house, 5.0)
        topics = house.hub.topics

        async def is_forgotten() -> bool:
            return await topics.all() == []

        await until(is_forgotten, "end of the topic")
        assert topics._scheduler._state == {} and len(callback.requests) == 1

    @pytest.mark.parametrize("by", ["sweep", "start", "ping"])
    async def test_what_nobody_asks_for_is_dropped_in_time(
        self, house: House, callback: Callback, by: str
    ) -> None:
        house.clock = ManualClock()
        await house.restart(**FAST)
        serve(callback, b"1")
        kept = callback.url + "?kept"
        for url in (callback.url, kept):
            await bind(house, url)
            await ping(house, url)
        await unbind(house, callback.url)
        assert len(await house.hub.topics.all()) == 2
        if by == "start":
            await house.restart(**FAST)
        elif by == "sweep":
            advance(house, fetch_scheduler.SWEEP_S)
        else:
            await house.hub.topics.ping([callback.url])

        async def is_dropped() -> bool:
            return [topic.url for topic, _ in await house.hub.topics.all()] == [kept]

        await until(is_dropped, "end of the topic")


class TestChecks:
    @pytest.mark.parametrize(
        ("link", "denied"),
        [
            ("", None),
            ("<{url}>; rel=self", None),
            ("<{url}/%7E>; rel=x", None),
            ("<http://127.0.0.1:15672/hub>; rel=hub, <{url}>; rel=self", None),
            ("<https://other/>; rel=hub, <http://127.0.0.1:15672/hub>; rel=hub", None),
            ("<{url}/other>; rel=self", "own URL is {url}/other"),
            ("<https://other/>; rel=hub", "by another hub: https://other/"),
        ],
    )
    async def test_what_a_topic_says_of_itself(
        self, house: House, callback: Callback, link: str, denied: str | None
    ) -> None:
        serve(callback, b"1", Link=link.format(url=callback.url))
        found = await house.hub.topics.check(callback.url)
        if denied is None:
            assert found is None
        else:
            assert found is not None and denied.format(url=callback.url) in found

    async def test_what_can_not_be_fetched(self, house: House, callback: Callback) -> None:
        callback.default = Answer(404)
        assert "answered 404" in str(await house.hub.topics.check(callback.url))
        assert "not public" in str(await house.hub.topics.check("http://10.0.0.1/"))


class TestContentWithPings:
    async def test_it_is_distributed_without_a_fetch(
        self, house: House, callback: Callback
    ) -> None:
        await bind(house, callback.url)
        await bind(house, callback.url, ENTRIES, "new")
        topics = house.hub.topics
        for entries in ((("1", "a"),), (("1", "a"),), (("1", "a"), ("2", "b"))):
            await topics.publish_content(callback.url, atom(*entries), ATOM_TYPE)
        assert await house.depth("all") == 2 and callback.requests == []
        assert b">1<" not in (await bodies(house, "new", 2))[1]
        topic = await topics.topic(callback.url)
        assert topic is not None and topic.due_at is None and topic.content_type == ATOM_TYPE

    async def test_for_nobody_it_costs_nothing(self, house: House, callback: Callback) -> None:
        await house.hub.topics.publish_content(callback.url, b"1", "text/plain")
        assert await house.hub.topics.all() == []

    async def test_what_is_refused(self, house: House, callback: Callback) -> None:
        await bind(house, callback.url)
        with pytest.raises(BadRequest, match="empty"):
            await house.hub.topics.publish_content(callback.url, b"", "text/plain")
        await house.engine.declare_queue("/", FULL)
        await bind(house, callback.url, queue="full")
        with pytest.raises(NotDistributed):
            await house.hub.topics.publish_content(callback.url, b"1", "text/plain")

    async def test_a_ping_before_it_still_counts(self, house: House, callback: Callback) -> None:
        serve(callback, b"3", ETag='"3"')
        await bind(house, callback.url)
        await ping(house, callback.url)
        await house.hub.topics.publish_content(callback.url, b"1", "text/plain")
        serve(callback, b"2")
        await ping(house, callback.url)
        assert "If-None-Match" not in callback.requests[-1].headers  # it is not what they had
        assert await bodies(house, "all", 3) == [b"3", b"1", b"2"]

    async def test_a_ping_that_waits_outlives_it(self, house: House, callback: Callback) -> None:
        house.clock = ManualClock()
        await house.restart(fetch_gap_s=5.0)
        serve(callback, b"1")
        await bind(house, callback.url)
        await ping(house, callback.url)
        serve(callback, b"3")
        await house.hub.topics.ping([callback.url])  # not before 5 s
        await house.hub.topics.publish_content(callback.url, b"2", "text/plain")
        await house.restart()
        await settled(house, callback.url)
        assert await bodies(house, "all", 3) == [b"1", b"2", b"3"]


async def test_listing(house: House, callback: Callback) -> None:
    serve(callback, b"1")
    for queue in ("all", "new"):
        await bind(house, callback.url, queue=queue)
    await ping(house, callback.url)
    [(topic, subscribers)] = await house.hub.topics.all()
    assert (topic.url, subscribers) == (callback.url, 2)
    assert await house.hub.topics.subscribers(callback.url) == 2
