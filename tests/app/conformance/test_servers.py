"""The publisher and the subscribers that checks are played with."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from warrenmq.app.conformance.callback import always
from warrenmq.app.conformance.exchange import Answer
from warrenmq.app.conformance.options import Options
from warrenmq.app.conformance.results import Unusable
from warrenmq.app.conformance.servers import Servers
from warrenmq.app.conformance.transcript import Transcript

HUB = "http://hub.example/"


@pytest.fixture
async def servers() -> AsyncIterator[Servers]:
    async with Servers(Options(hub=HUB)) as servers:
        yield servers


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False) as client:
        yield client


async def test_topic(servers: Servers, client: httpx.AsyncClient) -> None:
    trace = Transcript()
    topic = servers.topic(trace, "text/plain; charset=x", b"content", "/a?b=c")
    answer = await client.get(topic.url)
    assert (answer.status_code, answer.content) == (200, b"content")
    assert answer.headers["Content-Type"] == "text/plain; charset=x"
    assert answer.headers["Link"] == f'<{HUB}>; rel="hub", <{topic.url}>; rel="self"'
    assert len(topic.fetches) == 1
    assert trace.lines == [f"<- GET {topic.url.removeprefix(servers.url)}: 200 'content'"]


async def test_topic_that_has_not_changed(servers: Servers, client: httpx.AsyncClient) -> None:
    topic = servers.topic(Transcript(), "text/plain", b"content")
    tag = (await client.get(topic.url)).headers["ETag"]
    assert (await client.get(topic.url, headers={"If-None-Match": tag})).status_code == 304
    topic.body = b"other"
    assert (await client.get(topic.url, headers={"If-None-Match": tag})).content == b"other"
    assert (await client.head(topic.url)).status_code == 200
    assert (await client.post(topic.url)).status_code == 405
    topic.status = 404
    assert (await client.get(topic.url)).status_code == 404


async def test_callback(servers: Servers, client: httpx.AsyncClient) -> None:
    callback = servers.callback(Transcript(), "/%2F//?hub.challenge=mine")
    answer = await client.get(f"{callback.url}&hub.mode=subscribe&hub.challenge=c%26d")
    assert (answer.status_code, answer.text) == (200, "c&d")
    assert callback.verifications[0].target == (
        f"{callback.target}&hub.mode=subscribe&hub.challenge=c%26d"
    )
    assert (await client.post(callback.url, content=b"news")).status_code == 204
    assert [one.body for one in callback.deliveries] == [b"news"]
    assert callback.deliveries[0].target == callback.target
    other = servers.callback(Transcript())
    await client.get(f"{other.url}?hub.mode=denied&hub.topic=t")
    await client.get(other.url)
    assert (len(other.denials), len(other.strays)) == (1, 1)


async def test_script(servers: Servers, client: httpx.AsyncClient) -> None:
    callback = servers.callback(Transcript())
    callback.receive = always(Answer(503, {"Retry-After": "7"}, b"later"))
    answer = await client.post(callback.url)
    assert (answer.status_code, answer.headers["Retry-After"], answer.text) == (503, "7", "later")
    callback.receive = always(Answer(drop=True))
    with pytest.raises(httpx.RemoteProtocolError):
        await client.post(callback.url)


async def test_wait(servers: Servers, client: httpx.AsyncClient) -> None:
    callback = servers.callback(Transcript())
    assert not await callback.delivered(1, 0.01)
    await client.post(callback.url)
    assert await callback.delivered(1, 0.01)


async def test_nothing_else_is_there(servers: Servers, client: httpx.AsyncClient) -> None:
    for path in ("/", "/topic/0123456789abcdef/document", "/callback/x"):
        assert (await client.get(servers.url + path)).status_code == 404


async def test_public_url(client: httpx.AsyncClient) -> None:
    """What a proxy puts before the path is no part of what has to be used exactly."""
    options = Options(hub=HUB, public_url="https://me.example/tests/")
    async with Servers(options) as servers:
        topic = servers.topic(Transcript(), "text/plain", b"content")
        assert topic.url.startswith("https://me.example/tests/topic/")
        port = servers.port
        local = topic.url.replace("https://me.example", f"http://127.0.0.1:{port}")
        assert (await client.get(local)).content == b"content"


async def test_address_that_is_none() -> None:
    with pytest.raises(Unusable, match="--listen 192.0.2.1:1: "):
        async with Servers(Options(hub=HUB, listen="192.0.2.1:1")):
            pass


async def test_ipv6(client: httpx.AsyncClient) -> None:
    async with Servers(Options(hub=HUB, listen="[::1]:0")) as servers:
        assert servers.url == f"http://[::1]:{servers.port}"
        topic = servers.topic(Transcript(), "text/plain", b"content")
        assert (await client.get(topic.url)).content == b"content"
