"""External topics from the ping to the queue: real HTTP, the embedded engine, real rows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.hub.support import House, deliveries, request, subscriptions_of, until
from tests.hub.topics.feeds import ATOM_TYPE, atom
from tests.support.http import Answer, Callback
from warrenmq.core.clock import ManualClock
from warrenmq.hub.engine.port import BindingSpec, ExchangeSpec, QueueSpec
from warrenmq.hub.errors import BadRequest, NotDistributed, StorageFailed
from warrenmq.hub.requests import Resource
from warrenmq.hub.subscriptions.attach import Attacher
from warrenmq.hub.topics import fetch_scheduler, updating
from warrenmq.hub.topics.names import CONTENT, ENTRIES, topic_key
from warrenmq.hub.topics.repository import TopicRepository
from warrenmq.hub.topics.source import TopicSource
from warrenmq.hub.topics.topic import Topic
from warrenmq.hub.topics.topics import Topics
from warrenmq.hub.workers.functions import load
from warrenmq.hub.workers.pool import Workers, WorkFailed

ENTRY = b"<entry><id>1</id><title>a</title><updated>2026-11-21T00:00:00Z</updated></entry>"
CUT = atom(("3", "c"))[:-40]
FULL = QueueSpec("full", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})


async def topic_that(house: House, url: str, is_so: Callable[[Topic], bool]) -> Topic:
    found: list[Topic] = []

    async def is_found() -> bool:
        topic = await house.hub.topics.topic(url)
        found[:] = [topic] if topic is not None and is_so(topic) else []
        return bool(found)

    await until(is_found, "topic in that state")
    return found[0]


async def settled(house: House, url: str) -> Topic:
    """The topic once it is not due any more."""
    return await topic_that(house, url, lambda topic: topic.due_at is None)


class Site:
    """The publisher of a topic, and the hub that it pings."""

    def __init__(self, house: House, publisher: Callback) -> None:
        self.house = house
        self.publisher = publisher
        self.url = publisher.url
        self.other_url = publisher.url + "?other"

    @property
    def topics(self) -> Topics:
        return self.house.hub.topics

    @property
    def fetches(self) -> int:
        return len(self.publisher.requests)

    async def restart(self, gap_s: float = 0.0, *, is_clocked: bool = False) -> None:
        if is_clocked:
            self.house.clock = ManualClock()
        await self.house.restart(fetch_gap_s=gap_s)

    def advance(self, seconds: float) -> None:
        assert isinstance(self.house.clock, ManualClock)
        self.house.clock.advance(round(seconds * 1_000))
        self.topics.scheduler.begin_due()

    async def bind(self, exchange: str = CONTENT, queue: str = "all", url: str = "") -> None:
        key = topic_key(url or self.url)
        await self.house.engine.bind("/", BindingSpec(exchange, queue, routing_key=key))

    async def subscribe(self, callback: Callback, exchange: str = CONTENT, **given: Any) -> None:
        """Subscribes, and returns when the hub has verified that."""
        source, key = Resource("/", "x", exchange), topic_key(self.url)
        asked = request(source, callback.url, key, topic_url=self.url, **given)
        await self.house.hub.subscriptions.subscribe(asked)

    def serve(self, body: bytes, kind: str = "text/plain", **headers: str) -> None:
        self.publisher.default = Answer(headers={"Content-Type": kind, **headers}, body=body)

    async def request(self) -> None:
        """A ping; the fetch comes later."""
        await self.topics.ping([self.url])

    async def ping(self, url: str = "") -> Topic:
        """A ping, and the topic after its fetch."""
        await self.topics.ping([url or self.url])
        return await self.settled(url)

    async def send(self, body: bytes, kind: str = "text/plain") -> None:
        """A ping with content."""
        await self.topics.publish_content(self.url, body, kind)

    async def settled(self, url: str = "") -> Topic:
        return await settled(self.house, url or self.url)

    async def failed(self, failures: int = 1) -> Topic:
        return await topic_that(self.house, self.url, lambda topic: topic.failures == failures)

    async def bodies(self, count: int, queue: str = "all") -> list[bytes]:
        return [one.message.body for one in await self.house.take(queue, count)]

    async def depths(self) -> tuple[int | None, int | None]:
        return await self.house.depth("all"), await self.house.depth("new")

    async def new_subscribers(self) -> dict[str, list[str]]:
        database = await self.house.hub.storage.database()
        return await TopicRepository(database).new_subscribers()


@pytest.fixture(autouse=True)
def read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents are read in this process: a worker process takes longer to start than a test."""

    async def run(_: Workers, function: str, payload: bytes, *, origin: str) -> bytes:
        return await asyncio.to_thread(load(function), payload)

    monkeypatch.setattr(Workers, "run", run)


@pytest.fixture
async def site(house: House, publisher: Callback) -> Site:
    """Pinged topics are fetched at once; the queue `all` is for whole content."""
    site = Site(house, publisher)
    await site.restart()
    for name in (CONTENT, ENTRIES):
        await house.engine.declare_exchange("/", ExchangeSpec(name, "direct"))
    for name in ("all", "new"):
        await house.engine.declare_queue("/", QueueSpec(name))
    site.serve(b"1")
    return site


@pytest.fixture
async def bound(site: Site) -> Site:
    """With the queue `all` bound."""
    await site.bind()
    return site


@pytest.fixture
async def clocked(bound: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """With a clock that tests advance, and waits without variation."""
    monkeypatch.setattr(updating, "RETRY_SPREAD", 0.0)
    await bound.restart(is_clocked=True)
    return bound


async def test_content_is_published_as_it_is_served(bound: Site) -> None:
    bound.serve(b"\xff\r\n\0", "text/plain; Charset=x")
    topic = await bound.ping()
    [delivery] = await bound.house.take("all", 1)
    message = delivery.message
    assert (message.body, message.routing_key) == (b"\xff\r\n\0", bound.url)
    assert (message.exchange, message.properties.delivery_mode) == (CONTENT, 2)
    assert message.properties.content_type == "text/plain; Charset=x"
    assert message.properties.headers == {"x-hub-topic-url": bound.url}
    assert topic.failures == 0 and topic.changed_at == topic.checked_at > 0


async def test_only_changes_are_distributed(bound: Site) -> None:
    await bound.bind(ENTRIES, "new")  # what is no feed is whole there too
    for body in (b"1", b"1", b"2"):
        bound.serve(body, ETag='"one"')
        await bound.ping()
    bound.publisher.default = Answer(304)
    topic = await bound.ping()
    for queue in ("all", "new"):
        assert await bound.bodies(2, queue) == [b"1", b"2"]
    assert await bound.depths() == (0, 0)
    asked = [one.headers.get("If-None-Match") for one in bound.publisher.requests]
    assert asked == [None, *['"one"'] * 3]
    assert topic.etag == '"one"' and topic.checked_at > topic.changed_at


async def test_a_long_url_has_a_digest_for_a_key(site: Site) -> None:
    url = site.url + "?" + "a" * 1_000
    await site.bind(url=url)
    await site.ping(url)
    assert (await site.house.take("all", 1))[0].message.routing_key == topic_key(url) != url


async def test_a_host_with_a_final_dot(site: Site) -> None:
    url = site.url.replace("127.0.0.1", "localhost.")
    await site.bind(url=url)
    await site.ping(url)
    assert await site.bodies(1) == [b"1"]
    assert await site.topics.check(url) is None


# Pings


async def test_pings_without_subscribers_are_ignored(site: Site) -> None:
    await site.topics.ping([f"{site.url}?{number}" for number in range(1_000)])
    await site.send(b"1")
    assert await site.topics.all() == [] and site.fetches == 0
    assert not (site.house.directory / "hub.sqlite3").exists()


async def test_a_ping_during_a_fetch_makes_one_more(
    bound: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = asyncio.Event()
    fetch = TopicSource.fetch

    async def slow(*given: Any, **named: Any) -> Any:
        fetched = await fetch(*given, **named)
        await go.wait()
        return fetched

    monkeypatch.setattr(TopicSource, "fetch", slow)
    await bound.request()
    await until(lambda: bound.fetches == 1, "request")
    bound.serve(b"new")
    for _ in range(3):
        await bound.request()
    go.set()
    await bound.settled()
    assert await bound.bodies(2) == [b"1", b"new"]
    assert bound.fetches == 2


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize("with_content", [False, True])
async def test_a_ping_too_early_waits_for_the_gap(
    clocked: Site, is_restarted: bool, with_content: bool
) -> None:
    await clocked.restart(5.0)
    await clocked.ping()
    clocked.serve(b"3")
    await clocked.request()
    if with_content:
        await clocked.send(b"2")
    if is_restarted:
        await clocked.restart(5.0)
    else:
        clocked.advance(4.9)
        assert len(clocked.topics.scheduler.deadlines) == 2  # it, and the sweep
        clocked.advance(0.1)
    await clocked.settled()
    expected = [b"1", b"2", b"3"] if with_content else [b"1", b"3"]
    assert await clocked.bodies(len(expected)) == expected
    assert clocked.fetches == 2


async def test_content_with_a_ping_needs_no_fetch(bound: Site) -> None:
    await bound.bind(ENTRIES, "new")
    for entries in ((("1", "a"),), (("1", "a"),), (("1", "a"), ("2", "b"))):
        await bound.send(atom(*entries), ATOM_TYPE)
    assert await bound.house.depth("all") == 2 and bound.fetches == 0
    assert b">1<" not in (await bound.bodies(2, "new"))[1]
    topic = await bound.topics.topic(bound.url)
    assert topic is not None and topic.due_at is None and topic.content_type == ATOM_TYPE


@pytest.mark.parametrize("is_pushed", [False, True])
async def test_a_feed_that_is_not_well_formed_is_distributed(bound: Site, is_pushed: bool) -> None:
    await bound.bind(ENTRIES, "new")
    first, second = (
        b"\r\n" + atom(*entries) for entries in ((("1", "a"),), (("2", "b"), ("1", "a")))
    )
    for body in (first, second, CUT):
        bound.serve(body, ATOM_TYPE)
        await (bound.send(body, ATOM_TYPE) if is_pushed else bound.request())
        topic = await bound.settled()
        assert topic.error == "" and "not well-formed" in topic.notice
    assert await bound.bodies(3) == [first, second, CUT]
    assert await bound.bodies(3, "new") == [first, second.replace(ENTRY, b""), CUT]


async def test_a_feed_that_takes_too_long_to_read_is_distributed(
    bound: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> bytes:
        raise WorkFailed("reading it took more than 5 s of the processor")

    monkeypatch.setattr(Workers, "run", fail)
    bound.serve(atom(("1", "a")), ATOM_TYPE)
    topic = await bound.ping()
    assert await bound.bodies(1) == [atom(("1", "a"))] and "more than 5 s" in topic.notice


async def test_content_that_is_refused(bound: Site) -> None:
    with pytest.raises(BadRequest, match="empty"):
        await bound.send(b"")
    await bound.house.engine.declare_queue("/", FULL)
    await bound.bind(queue="full")
    with pytest.raises(NotDistributed):
        await bound.send(b"1")


async def test_validators_are_for_the_content_distributed_last(bound: Site) -> None:
    bound.serve(b"3", ETag='"3"')
    await bound.ping()
    await bound.send(b"1")
    bound.serve(b"2")
    await bound.ping()
    assert "If-None-Match" not in bound.publisher.requests[-1].headers
    assert await bound.bodies(3) == [b"3", b"1", b"2"]


# Failures


async def test_a_failed_fetch_is_repeated_three_times(clocked: Site) -> None:
    clocked.publisher.default = Answer(500)
    await clocked.request()
    for failures, wait_s in enumerate(updating.RETRIES_S, 1):
        topic = await clocked.failed(failures)
        assert "answered 500" in topic.error and topic.due_at == topic.checked_at + wait_s
        clocked.advance(wait_s - 0.001)
        assert clocked.fetches == failures
        clocked.advance(0.001)
    topic = await clocked.failed(4)
    assert topic.due_at is None and clocked.fetches == 4
    await clocked.request()  # the waits begin anew
    topic = await clocked.failed(5)
    assert topic.due_at == topic.checked_at + updating.RETRIES_S[0]
    clocked.serve(b"1")
    topic = await clocked.ping()  # without waiting for the retry
    assert (topic.failures, topic.error) == (0, "") and await clocked.bodies(1) == [b"1"]


async def test_retry_after_holds_over_pings_and_restarts(clocked: Site) -> None:
    await clocked.bind(url=clocked.other_url)
    clocked.publisher.default = Answer(503, headers={"Retry-After": "600"})
    await clocked.request()
    topic = await clocked.failed()
    assert topic.due_at == topic.not_before == topic.checked_at + 600
    clocked.serve(b"1")
    for _ in range(2):
        await clocked.request()
        await clocked.ping(clocked.other_url)  # what is due by now is fetched before that
        await clocked.restart()
    clocked.advance(599.9)
    await clocked.ping(clocked.other_url)
    paths = [one.raw_path for one in clocked.publisher.requests]
    assert paths == ["/callback", *["/callback?other"] * 3]
    clocked.advance(0.1)
    await clocked.settled()
    assert clocked.fetches == 5


async def test_410_is_final(clocked: Site) -> None:
    clocked.publisher.default = Answer(410)
    topic = await clocked.ping()
    assert (topic.failures, topic.error) == (1, "its server answered 410")


async def test_content_refused_by_a_queue_is_distributed_again(site: Site) -> None:
    await site.house.engine.declare_queue("/", FULL)
    await site.bind(queue="full")
    await site.request()
    topic = await site.failed()
    assert "a queue has not taken" in topic.error and topic.digest == ""
    await site.house.engine.delete_queue("/", "full")
    await site.bind()
    assert (await site.ping()).digest != ""
    assert await site.bodies(1) == [b"1"]


async def test_a_failed_database_repeats_content(
    clocked: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = asyncio.Event()

    async def refuse(*_: object) -> None:
        refused.set()
        raise StorageFailed("can't be reached now", field="database")

    with monkeypatch.context() as patch:
        patch.setattr(TopicRepository, "put", refuse)
        await clocked.request()
        await refused.wait()
    clocked.advance(fetch_scheduler.STORAGE_RETRY_S)
    await clocked.settled()
    assert await clocked.bodies(2) == [b"1", b"1"]


# New subscribers


async def test_a_new_subscription_gets_the_current_content(site: Site, callback: Callback) -> None:
    """And the exchanges are declared for the first one."""
    for name in (CONTENT, ENTRIES):
        await site.house.engine.delete_exchange("/", name)
    await site.request()
    await site.subscribe(callback)
    assert [one.body for one in await deliveries(callback, 1)] == [b"1"]
    await site.settled()
    assert await site.new_subscribers() == {}
    for name in (CONTENT, ENTRIES):
        spec = await site.house.engine.exchange("/", name)
        assert spec is not None and (spec.type, spec.durable) == ("direct", True)


@pytest.mark.parametrize("is_changed", [False, True])
async def test_a_later_subscription_gets_the_current_content(
    site: Site, callback: Callback, is_changed: bool
) -> None:
    """A change at the same time reaches all, unchanged content the new one alone."""
    one, both = atom(("1", "a")), atom(("1", "a"), ("2", "b"))
    with Callback() as later:
        site.serve(one, ATOM_TYPE, ETag='"1"')
        await site.subscribe(callback)
        await deliveries(callback, 1)
        if is_changed:
            site.serve(both, ATOM_TYPE)
        await site.subscribe(later, ENTRIES)
        first = both if is_changed else one
        assert (await deliveries(later, 1))[0].body == first
        site.serve(both, ATOM_TYPE)
        await site.ping()
        assert [found.body for found in await deliveries(callback, 2)] == [one, both]
        if not is_changed:
            assert b">1<" not in (await deliveries(later, 2))[1].body


@pytest.mark.parametrize("exchange", [CONTENT, ENTRIES])
@pytest.mark.parametrize("is_being_bound", [False, True])
async def test_two_subscriptions_at_a_time_get_the_content_once(
    site: Site,
    callback: Callback,
    monkeypatch: pytest.MonkeyPatch,
    exchange: str,
    is_being_bound: bool,
) -> None:
    """The second is bound, wholly or in part, while the content is fetched for the first."""
    fetched, go = asyncio.Event(), asyncio.Event()
    fetch, prepare = TopicSource.fetch, Attacher.prepare

    async def slow_fetch(*given: Any, **named: Any) -> Any:
        found = await fetch(*given, **named)
        fetched.set()
        await go.wait()
        return found

    async def slow_prepare(*given: Any) -> None:
        await prepare(*given)
        go.set()
        for _ in range(10):
            await asyncio.sleep(0)  # the content is distributed as soon as it may be

    monkeypatch.setattr(TopicSource, "fetch", slow_fetch)
    await site.subscribe(callback, exchange)
    await fetched.wait()
    with Callback() as later:
        if is_being_bound:
            monkeypatch.setattr(Attacher, "prepare", slow_prepare)
        await site.subscribe(later, exchange)
        await until(lambda: len(subscriptions_of(site.house.hub)) == 2, "both subscriptions")
        go.set()
        await deliveries(later, 1)
        await site.settled()
        site.serve(b"2")
        await site.ping()
        for one in (callback, later):
            assert [found.body for found in await deliveries(one, 2)] == [b"1", b"2"]


async def test_a_later_subscription_gets_changed_content_once(
    site: Site, callback: Callback
) -> None:
    """What is no feed goes whole to those who want new entries alone."""
    await site.subscribe(callback)
    await deliveries(callback, 1)
    site.serve(b"2")
    with Callback() as later:
        await site.subscribe(later, ENTRIES)
        await deliveries(later, 1)
        await site.settled()
        site.serve(b"3")
        await site.ping()
        assert [found.body for found in await deliveries(later, 2)] == [b"2", b"3"]


async def test_a_renewal_gets_nothing_again(site: Site, callback: Callback) -> None:
    await site.subscribe(callback)
    await deliveries(callback, 1)
    await site.subscribe(callback, lease_seconds="60")
    await until(lambda: subscriptions_of(site.house.hub)[0].lease_seconds == 60, "renewed lease")
    site.serve(b"2")
    await site.ping()
    assert [one.body for one in await deliveries(callback, 2)] == [b"1", b"2"]


async def test_first_content_is_sent_after_a_failure_and_a_restart(
    site: Site, callback: Callback
) -> None:
    with Callback() as later:
        await site.subscribe(callback)
        await deliveries(callback, 1)
        site.publisher.default, before = Answer(500), site.fetches
        await site.subscribe(later)
        await until(lambda: site.fetches > before, "request")
        site.serve(b"1")
        await site.restart()
        await site.ping()
        assert [one.body for one in await deliveries(later, 1)] == [b"1"]
        assert len(callback.deliveries) == 1


@pytest.mark.parametrize("by", ["fetch", "sweep", "start", "ping"])
async def test_a_topic_without_subscribers_is_dropped(clocked: Site, by: str) -> None:
    await clocked.restart(5.0)
    await clocked.bind(url=clocked.other_url)
    for url in (clocked.url, clocked.other_url):
        await clocked.ping(url)
    fetches = clocked.fetches
    if by == "fetch":
        await clocked.request()
    key = topic_key(clocked.url)
    await clocked.house.engine.unbind("/", BindingSpec(CONTENT, "all", routing_key=key))
    assert len(await clocked.topics.all()) == 2
    if by == "start":
        await clocked.restart()
    elif by == "ping":
        await clocked.request()
    else:
        clocked.advance({"fetch": 5.0, "sweep": fetch_scheduler.SWEEP_S}[by])

    async def is_dropped() -> bool:
        return [topic.url for topic, _ in await clocked.topics.all()] == [clocked.other_url]

    await until(is_dropped, "end of the topic")
    states = clocked.topics.scheduler.states.all()
    assert [one.key for one in states] == [clocked.other_url]
    assert clocked.fetches == fetches


# Checks


@pytest.mark.parametrize(
    ("link", "denied"),
    [
        ("", ""),
        ("<{url}>; rel=self", ""),
        ("<{url}/%7E>; rel=x", ""),
        ("<http://127.0.0.1:15672/hub>; rel=hub, <{url}>; rel=self", ""),
        ("<https://other/>; rel=hub, <http://127.0.0.1:15672/hub>; rel=hub", ""),
        ("<{url}/other>; rel=self", "own URL is {url}/other"),
        ("<https://other/>; rel=hub", "by another hub: https://other/"),
    ],
)
async def test_links_of_the_topic(site: Site, link: str, denied: str) -> None:
    site.serve(b"1", Link=link.format(url=site.url))
    found = await site.topics.check(site.url)
    assert bool(found) is bool(denied) and denied.format(url=site.url) in (found or "")
