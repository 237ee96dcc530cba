"""Anonymous clients publish content of their own for callbacks that never accept it."""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from aiohttp import web

from tests.support.http import Answer, Callback
from tests.support.process import wait_until
from tests.support.server import WarrenServer

from .support import MIB, assert_serves

TOPICS = 10
BODY_BYTES = 8 * MIB
AN_HOUR = 32 * MIB
"""Of content for one client, in the test."""


class Bombs(Callback):
    """Topics that are 1,000 times as large as what is sent, and new each time."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers = itertools.count()

    def _answer(self, request: web.Request) -> Answer:
        body = gzip.compress(b"%020d" % next(self._numbers) + bytes(BODY_BYTES - 20))
        headers = {"Content-Encoding": "gzip", "Content-Type": "text/plain"}
        return Answer(headers=headers, body=body)


@pytest.fixture
def bombs() -> Iterator[Bombs]:
    with Bombs() as bombs:
        yield bombs


def size_of(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def test_anonymous_clients_have_a_content_budget(bombs: Bombs, callback: Callback) -> None:
    callback.default = Answer(500)
    flags = ["--hub-anonymous-content", str(AN_HOUR), "--fetch-gap-s", "0.1"]
    with WarrenServer(args=[*flags, "--log-level", "info"]) as server:
        before = size_of(server.data)
        topics = [f"{bombs.url}/{number}" for number in range(TOPICS)]
        with httpx.Client(base_url=server.http_url) as client:
            for topic in topics:
                form = {"hub.mode": "subscribe", "hub.topic": topic, "hub.callback": callback.url}
                assert client.post("/hub", data=form).status_code == 202

            def is_over() -> bool:
                client.post("/hub", data={"hub.mode": "publish", "hub.url": topics})
                return server.output().count("subscribers is used up") >= TOPICS

            wait_until(is_over, 60.0, "topics that have to wait")
            client.put("/endpoint/q/mine", auth=("guest", "guest"))
            mine = client.post("/endpoint/q/mine", content=b"mine", auth=("guest", "guest"))
            assert mine.status_code == 202
        # Each topic may be under way once when the last byte is spent.
        assert len(bombs.requests) <= AN_HOUR // BODY_BYTES + TOPICS
        assert size_of(server.data) - before < 4 * (AN_HOUR + TOPICS * BODY_BYTES)
        assert_serves(server)


def test_anonymous_clients_have_no_foreign_topics_by_default(
    bombs: Bombs, callback: Callback
) -> None:
    with WarrenServer(dev=False) as server:
        form = {"hub.mode": "subscribe", "hub.topic": bombs.url, "hub.callback": callback.url}
        answer = httpx.post(f"{server.http_url}/hub", data=form)
        assert answer.status_code == 401 and "hub_foreign_topics" in answer.text
        ping = httpx.post(
            f"{server.http_url}/hub", data={"hub.mode": "publish", "hub.url": bombs.url}
        )
        assert ping.status_code == 403
    assert bombs.requests == callback.requests == []
