"""Tokens bind the hub's own resources, inside the broker (http_contract 13)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.http import Callback
from warrenmq.core.clock import ManualClock
from warrenmq.core.errors import ChannelError
from warrenmq.hub.engine.port import BindingSpec, ExchangeSpec, Outcome, QueueSpec
from warrenmq.hub.errors import BadRequest, CallbackRefused, SourceMissing, TokenRefused
from warrenmq.hub.owner_rights import EverybodyMay
from warrenmq.hub.requests import Resource

from .support import BASE_URL, INBOX, NEWS, House, request

OUT = Resource("/", "q", "out")
COPY = Resource("/", "x", "copy")


def url(resource: Resource) -> str:
    return f"{BASE_URL}/endpoint/{resource.kind}/{resource.name}"


@pytest.fixture
async def wired(house: House) -> House:
    """The house with the queue `out`, and the exchange `copy` bound to the queue `copied`."""
    await house.engine.declare_queue("/", QueueSpec("out"))
    await house.engine.declare_exchange("/", ExchangeSpec("copy", "fanout"))
    await house.engine.declare_queue("/", QueueSpec("copied"))
    await house.engine.bind("/", BindingSpec("copy", "copied"))
    return house


async def connect(house: House, source: Resource, sink: Resource, topic: str = "eu.#") -> None:
    token = house.hub.shortcuts.generate_token(sink, "subscribe")
    asked = request(source, url(sink), topic, verify_token=token)
    assert house.hub.shortcuts.sink(asked, "subscribe") == sink
    result = await house.hub.subscriptions.subscribe(asked)
    assert result.verified


async def disconnect(house: House, source: Resource, sink: Resource, topic: str = "eu.#") -> None:
    token = house.hub.shortcuts.generate_token(sink, "unsubscribe")
    await house.hub.subscriptions.unsubscribe(request(source, url(sink), topic, verify_token=token))


async def test_exchange_to_queue(wired: House) -> None:
    await connect(wired, NEWS, OUT)
    [listed] = wired.hub.subscriptions.all()
    assert listed.sink == OUT and listed.lease_seconds == 30 * 86_400
    await wired.publish("us.ny", b"no")
    await wired.publish("eu.fr", b"yes")
    [got] = await wired.take("out", 1)
    assert (got.message.exchange, got.message.routing_key) == ("news", "eu.fr")
    await disconnect(wired, NEWS, OUT)
    assert wired.hub.subscriptions.all() == []
    await wired.publish("eu.fr", b"after")
    assert await wired.depth("out") == 0


async def test_exchange_to_exchange(wired: House) -> None:
    await connect(wired, NEWS, COPY)
    await wired.publish("eu.fr", b"yes")
    [got] = await wired.take("copied", 1)
    assert got.message.body == b"yes"
    await disconnect(wired, NEWS, COPY)
    await wired.publish("eu.fr", b"after")
    assert await wired.depth("copied") == 0


@pytest.mark.parametrize(("sink", "end"), [(OUT, "out"), (COPY, "copied")])
async def test_queue_to_queue_and_to_exchange(wired: House, sink: Resource, end: str) -> None:
    await connect(wired, INBOX, sink)
    for number in range(20):
        await wired.post("in", "eu.fr", b"%d" % number)
    got = await wired.take(end, 20)
    assert [int(one.message.body) for one in got] == list(range(20))
    assert {one.message.routing_key for one in got} == {"eu.fr"}
    await disconnect(wired, INBOX, sink)
    await wired.post("in", "eu.fr", b"after")
    assert await wired.depth("in") == 1


async def test_a_loop_of_queues_ends_in_the_dead_queue(wired: House) -> None:
    await wired.engine.declare_queue("/", QueueSpec("hub.dead"))
    await connect(wired, INBOX, OUT)
    await connect(wired, OUT, INBOX)
    await wired.post("in", "k", b"round")
    [dead] = await wired.take("hub.dead", 1)
    assert dead.message.body == b"round"
    assert "loop" in str((dead.message.properties.headers or {})["x-hub-reason"])


class OneKey(EverybodyMay):
    """Owners may write one key to exchanges."""

    def refuse_write(self, owner: str, resource: Resource, routing_key: str | None) -> str | None:
        return None if routing_key in (None, "eu.fr") else f"{owner} may not write '{routing_key}'"


@pytest.mark.parametrize(("sink", "end", "passes"), [(OUT, "out", 2), (COPY, "copied", 1)])
async def test_keys_that_the_owner_may_not_write_are_not_relayed(
    wired: House, sink: Resource, end: str, passes: int
) -> None:
    wired.rights = OneKey()
    await wired.restart()
    await wired.engine.declare_queue("/", QueueSpec("hub.dead"))
    await connect(wired, INBOX, sink)
    await wired.post("in", "secret", b"no")
    await wired.post("in", "eu.fr", b"yes")
    got = await wired.take(end, passes)
    assert got[-1].message.body == b"yes"
    dead = await wired.take("hub.dead", 2 - passes)
    assert [one.message.body for one in dead] == [b"no"][: 2 - passes]


async def test_a_binding_outlives_a_restart(wired: House) -> None:
    await connect(wired, NEWS, OUT)
    await wired.engine.delete_exchange("/", "news")
    await wired.engine.declare_exchange("/", ExchangeSpec("news", "topic"))
    await wired.restart()
    await wired.publish("eu.fr", b"yes")
    assert len(await wired.take("out", 1)) == 1


async def test_a_token_with_another_callback_subscribes_nothing(
    wired: House, callback: Callback
) -> None:
    token = wired.hub.shortcuts.generate_token(OUT, "subscribe")
    for target in (callback.url, url(COPY), url(INBOX), "http://example.org/endpoint/q/out"):
        with pytest.raises(TokenRefused):
            await wired.hub.subscriptions.subscribe(request(NEWS, target, verify_token=token))
    assert wired.hub.subscriptions.all() == [] and callback.requests == []


async def test_a_token_for_another_use_or_too_old(wired: House) -> None:
    token = wired.hub.shortcuts.generate_token(OUT, "unsubscribe")
    with pytest.raises(TokenRefused, match=r"another hub\.mode"):
        await wired.hub.subscriptions.subscribe(request(NEWS, url(OUT), verify_token=token))
    wired.clock = ManualClock()
    await wired.restart()
    token = wired.hub.shortcuts.generate_token(OUT, "subscribe")
    wired.clock.advance(301_000)
    with pytest.raises(TokenRefused, match="expired"):
        await wired.hub.subscriptions.subscribe(request(NEWS, url(OUT), verify_token=token))


async def test_an_own_url_without_a_token_is_refused(wired: House) -> None:
    with pytest.raises(CallbackRefused, match="token"):
        await wired.hub.subscriptions.subscribe(request(NEWS, url(OUT), verify_token="wrn1.forged"))


async def test_sinks_that_can_not_be_bound(wired: House) -> None:
    token = wired.hub.shortcuts.generate_token(NEWS, "subscribe")
    with pytest.raises(BadRequest, match="the source itself"):
        await wired.hub.subscriptions.subscribe(request(NEWS, url(NEWS), verify_token=token))
    missing = Resource("/", "q", "missing")
    token = wired.hub.shortcuts.generate_token(missing, "subscribe")
    with pytest.raises(SourceMissing):
        await wired.hub.subscriptions.subscribe(request(NEWS, url(missing), verify_token=token))
    token = wired.hub.shortcuts.generate_token(OUT, "subscribe")
    default = Resource("/", "x", "")
    with pytest.raises(ChannelError) as caught:
        await wired.hub.subscriptions.subscribe(request(default, url(OUT), verify_token=token))
    assert caught.value.code == 403


async def test_checking_a_token_for_its_resource(wired: House) -> None:
    token = wired.hub.shortcuts.generate_token(OUT, "subscribe")
    assert wired.hub.shortcuts.check_token(token, OUT, "subscribe").resource == OUT
    for wrong, resource, use in (
        (token, INBOX, "subscribe"),
        (token, OUT, "unsubscribe"),
        ("other", OUT, "subscribe"),
        (None, OUT, "subscribe"),
    ):
        with pytest.raises(TokenRefused):
            wired.hub.shortcuts.check_token(wrong, resource, use)


@pytest.mark.parametrize("use", [None, "", "publish"])
async def test_a_token_needs_a_known_use(wired: House, use: str | None) -> None:
    with pytest.raises(BadRequest) as caught:
        wired.hub.shortcuts.generate_token(OUT, use)
    assert caught.value.field == "hub.intended_use"


async def test_a_sink_that_is_gone_holds_the_message(wired: House) -> None:
    await connect(wired, INBOX, OUT)
    await wired.engine.delete_queue("/", "out")
    await wired.post("in", "k", b"x")
    await wired.engine.declare_queue("/", QueueSpec("out"))
    [got] = await wired.take("out", 1)
    assert got.message.body == b"x"


async def test_a_disk_that_takes_no_more_holds_the_message(
    wired: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warrenmq.hub.delivery.relay.BACK_OFF_S", 0.01)
    await connect(wired, INBOX, OUT)
    await wired.post("in", "k", b"x")
    [first] = await wired.take("out", 1)
    publish = wired.engine.publish
    refused: list[Any] = []

    async def full(*args: Any, **kwargs: Any) -> Outcome:
        if args[4] == b"y" and len(refused) < 2 and kwargs.get("queue") == "out":
            refused.append(args)
            return Outcome.NOT_KEPT
        return await publish(*args, **kwargs)

    monkeypatch.setattr(wired.engine, "publish", full)
    await wired.post("in", "k", b"y")
    [got] = await wired.take("out", 1)
    assert (first.message.body, got.message.body) == (b"x", b"y")
    assert len(refused) == 2
