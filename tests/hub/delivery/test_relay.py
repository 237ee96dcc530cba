"""Tokens bind the hub's own resources, inside the broker (http_contract 13)."""

from __future__ import annotations

from typing import Any

import pytest

from warrenmq.core.clock import ManualClock
from warrenmq.core.errors import ChannelError
from warrenmq.hub.engine.port import BindingSpec, ExchangeSpec, PublishOutcome, QueueSpec
from warrenmq.hub.errors import BadRequest, SourceMissing, TokenRefused
from warrenmq.hub.owner_rights import AllowAll
from warrenmq.hub.requests import Resource

from ..support import BASE_URL, INBOX, NEWS, House, request

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


class OneKey(AllowAll):
    """Owners may write one key to exchanges."""

    def write_refusal(self, owner: str, resource: Resource, routing_key: str | None) -> str | None:
        return None if routing_key in (None, "eu.fr") else f"{owner} may not write '{routing_key}'"


@pytest.mark.parametrize(("sink", "end", "passes"), [(OUT, "out", 3), (COPY, "copied", 1)])
async def test_forbidden_keys_are_not_relayed(
    wired: House, sink: Resource, end: str, passes: int
) -> None:
    wired.rights = OneKey()
    await wired.restart()
    await wired.engine.declare_queue("/", QueueSpec("hub.dead"))
    await connect(wired, INBOX, sink)
    await wired.post("in", "secret", b"key")
    await wired.post("in", "eu.fr", b"copy", headers={"CC": ["eu.fr", "secret"]})
    await wired.post("in", "eu.fr", b"yes")
    got = await wired.take(end, passes)
    assert got[-1].message.body == b"yes"
    dead = await wired.take("hub.dead", 3 - passes)
    assert [one.message.body for one in dead] == [b"key", b"copy"][: 3 - passes]


async def test_a_binding_survives_a_restart(wired: House) -> None:
    await connect(wired, NEWS, OUT)
    await wired.engine.delete_exchange("/", "news")
    await wired.engine.declare_exchange("/", ExchangeSpec("news", "topic"))
    await wired.restart()
    await wired.publish("eu.fr", b"yes")
    assert len(await wired.take("out", 1)) == 1


async def test_a_token_for_another_use_or_too_late(wired: House) -> None:
    token = wired.hub.shortcuts.generate_token(OUT, "unsubscribe")
    with pytest.raises(TokenRefused, match=r"another hub\.mode"):
        await wired.subscribe(NEWS, url(OUT), verify_token=token)
    wired.clock = ManualClock()
    await wired.restart()
    token = wired.hub.shortcuts.generate_token(OUT, "subscribe")
    wired.clock.advance(301_000)
    with pytest.raises(TokenRefused, match="expired"):
        await wired.subscribe(NEWS, url(OUT), verify_token=token)


async def test_invalid_sinks_are_refused(wired: House) -> None:
    token = wired.hub.shortcuts.generate_token(NEWS, "subscribe")
    with pytest.raises(BadRequest, match="the source itself"):
        await wired.subscribe(NEWS, url(NEWS), verify_token=token)
    missing = Resource("/", "q", "missing")
    token = wired.hub.shortcuts.generate_token(missing, "subscribe")
    with pytest.raises(SourceMissing):
        await wired.subscribe(NEWS, url(missing), verify_token=token)
    token = wired.hub.shortcuts.generate_token(OUT, "subscribe")
    default = Resource("/", "x", "")
    with pytest.raises(ChannelError) as caught:
        await wired.subscribe(default, url(OUT), verify_token=token)
    assert caught.value.code == 403


async def test_a_missing_sink_requeues_the_message(wired: House) -> None:
    await connect(wired, INBOX, OUT)
    await wired.engine.delete_queue("/", "out")
    await wired.post("in", "k", b"x")
    await wired.engine.declare_queue("/", QueueSpec("out"))
    [got] = await wired.take("out", 1)
    assert got.message.body == b"x"


async def test_a_full_disk_requeues_the_message(
    wired: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warrenmq.hub.delivery.relay.BACK_OFF_S", 0.01)
    await connect(wired, INBOX, OUT)
    await wired.post("in", "k", b"x")
    [first] = await wired.take("out", 1)
    publish = wired.engine.publish
    refused: list[Any] = []

    async def full(*args: Any, **kwargs: Any) -> PublishOutcome:
        if args[5] == b"y" and len(refused) < 2 and kwargs.get("queue") == "out":
            refused.append(args)
            return PublishOutcome.NOT_DURABLE
        return await publish(*args, **kwargs)

    monkeypatch.setattr(wired.engine, "publish", full)
    await wired.post("in", "k", b"y")
    [got] = await wired.take("out", 1)
    assert (first.message.body, got.message.body) == (b"x", b"y")
    assert len(refused) == 2
