"""The examples of docs/hub.md, one after the other as they stand there, do what it says."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.http import Callback, Request
from tests.support.process import wait_until
from tests.support.server import WarrenServer
from tests.support.terminals import TIMEOUT_S, Terminals

DOCUMENT = (Path(__file__).parents[1] / "docs/hub.md").read_text()
EXAMPLES: list[str] = re.findall(r"^```sh\n(.*?)^```", DOCUMENT, re.MULTILINE | re.DOTALL)
CONFORMANCE = "warren conformance"
"""Is run in `tests/app/conformance`."""


class Reader:
    """Runs the examples with the callback of this test and asks the hub what has come of them."""

    def __init__(self, directory: Path, server: WarrenServer, callback: Callback) -> None:
        self._terminals = Terminals(DOCUMENT, directory, server)
        self._terminals.callback_port = callback.port
        self._elsewhere = f"127.0.0.1:{callback.port}"
        self._client = httpx.Client(
            base_url=server.http_url, auth=("guest", "guest"), trust_env=False
        )

    def run(self, word: str) -> None:
        """The one example that has the word in it."""
        (example,) = [text for text in EXAMPLES if word in text]
        self._terminals.run(example.replace("example.org", self._elsewhere))

    def get(self, path: str) -> Any:
        return self._client.get(path).raise_for_status().json()

    def subscriptions(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.get("/subscriptions")["subscriptions"]
        return found

    def close(self) -> None:
        self._client.close()
        self._terminals.close()


@pytest.fixture
def reader(tmp_path: Path, warren: WarrenServer, callback: Callback) -> Iterator[Reader]:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    reader = Reader(tmp_path, warren, callback)
    try:
        yield reader
    finally:
        reader.close()


def test_examples(reader: Reader, callback: Callback) -> None:
    reader.run("hub.secret=")
    wait_until(lambda: len(reader.subscriptions()) == 1, TIMEOUT_S, "the subscription")
    reader.run("ce-specversion")
    assert callback.wait(1)[0].headers["ce-type"] == "news.published"
    reader.run("hub.mode=batch")
    deliveries = callback.wait(3)
    assert [delivery.body for delivery in deliveries[1:]] == [b'{"n":1}', b'{"n":2}']
    assert all(is_signed(delivery) for delivery in deliveries)

    reader.run("hub.intended_use=subscribe")
    sinks = [found["sink"] for found in reader.subscriptions() if found["sink"]]
    assert sinks == [{"vhost": "/", "resource_type": "queue", "resource_name": "archive"}]

    reader.run("hub.mode=publish")
    reader.run("/api/hub/upstreams/")
    assert reader.get("/api/hub/upstreams/%2F/world")["sink"] == {"type": "x", "name": "news"}
    reader.run("/api/hub/capabilities")
    assert [made["name"] for made in reader.get("/api/hub/capabilities")] == ["news"]


def test_no_example_is_left_out() -> None:
    ran = re.findall(r'reader\.run\("(.*)"\)', Path(__file__).read_text())
    left = [text for text in EXAMPLES if not any(word in text for word in ran)]
    assert [CONFORMANCE in text for text in left] == [True]


def is_signed(delivery: Request) -> bool:
    """By the algorithm of Standard Webhooks, with the secret that the document has."""
    (secret,) = re.findall(r"hub\.secret=whsec_(\S+)", DOCUMENT)
    headers = delivery.headers
    head = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode()
    digest = hmac.digest(base64.b64decode(secret), head + delivery.body, hashlib.sha256)
    return headers["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"
