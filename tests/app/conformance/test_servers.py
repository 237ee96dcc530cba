"""The publisher and the subscribers that checks are played with."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from httpx import AsyncClient

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
async def client() -> AsyncIterator[AsyncClient]:
    async with AsyncClient(trust_env=False) as client:
        yield client


async def test_an_unchanged_topic_is_answered_with_304(
    servers: Servers, client: AsyncClient
) -> None:
    topic = servers.topic(Transcript(), "text/plain", b"content")
    tag = (await client.get(topic.url)).headers["ETag"]
    assert (await client.get(topic.url, headers={"If-None-Match": tag})).status_code == 304
    topic.body = b"other"
    assert (await client.get(topic.url, headers={"If-None-Match": tag})).content == b"other"
    assert (await client.head(topic.url)).status_code == 200
    assert (await client.post(topic.url)).status_code == 405
    topic.status = 404
    assert (await client.get(topic.url)).status_code == 404


async def test_public_url(client: AsyncClient) -> None:
    options = Options(hub=HUB, public_url="https://me.example/tests/")
    async with Servers(options) as servers:
        topic = servers.topic(Transcript(), "text/plain", b"content")
        assert topic.url.startswith("https://me.example/tests/topic/")
        port = servers.port
        local = topic.url.replace("https://me.example", f"http://127.0.0.1:{port}")
        assert (await client.get(local)).content == b"content"


async def test_an_invalid_address_is_refused() -> None:
    with pytest.raises(Unusable, match="--listen 192.0.2.1:1: "):
        async with Servers(Options(hub=HUB, listen="192.0.2.1:1")):
            pass


async def test_ipv6(client: AsyncClient) -> None:
    async with Servers(Options(hub=HUB, listen="[::1]:0")) as servers:
        assert servers.url == f"http://[::1]:{servers.port}"
        topic = servers.topic(Transcript(), "text/plain", b"content")
        assert (await client.get(topic.url)).content == b"content"
