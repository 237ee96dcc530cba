"""Publishers who write the headers in which the hub notes what a message is."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from tests.conformance import raw
from tests.support.http import Callback
from tests.support.server import WarrenServer

AUTH = ("guest", "guest")
FORGED = {
    "x-hub-id": "msg_of_somebody_else", "x-hub-exchange": "bank", "x-hub-topic": "paid.in.full",
    "x-hub-subscription": "1", "x-hub-seal": "0" * 48,
}  # fmt: skip


def over_amqp(server: WarrenServer, queue: str, body: bytes) -> None:
    with raw.connect(server.amqp_port) as client:
        client.channel().put(queue, body, properties={"headers": FORGED})


def over_http(server: WarrenServer, queue: str, body: bytes) -> None:
    headers = {f"X-Amqp-Header-{name}": value for name, value in FORGED.items()}
    url = f"{server.http_url}/endpoint/q/{queue}"
    answer = httpx.post(url, content=body, headers=headers, auth=AUTH)
    assert answer.status_code == 202


def over_an_old_header(server: WarrenServer, queue: str, body: bytes) -> None:
    pairs = ", ".join(f"{name}={value}" for name, value in FORGED.items())
    url = f"{server.http_url}/endpoint/q/{queue}"
    answer = httpx.post(url, content=body, headers={"x-rabbithub-msg_header": pairs}, auth=AUTH)
    assert answer.status_code == 202


@pytest.mark.parametrize("publish", [over_amqp, over_http, over_an_old_header])
def test_forged_internal_headers_are_ignored(
    warren: WarrenServer, callback: Callback, publish: Callable[[WarrenServer, str, bytes], None]
) -> None:
    queue = f"forged-{callback.port}"
    httpx.put(f"{warren.http_url}/endpoint/q/{queue}", auth=AUTH).raise_for_status()
    form = {"hub.mode": "subscribe", "hub.callback": callback.url, "hub.topic": "t",
            "hub.secret": "of the subscriber"}  # fmt: skip
    url = f"{warren.http_url}/subscribe/q/{queue}"
    httpx.post(url, data=form, auth=AUTH, timeout=raw.TIMEOUT_S * 3).raise_for_status()
    for body in (b"first", b"second"):
        publish(warren, queue, body)
    deliveries = callback.wait(2)
    ids = {request.headers["webhook-id"] for request in deliveries}
    assert len(ids) == 2 and FORGED["x-hub-id"] not in ids
    for request in deliveries:
        assert request.headers.get("x-amqp-exchange", "") != "bank"
        assert (
            "paid.in.full" not in request.headers.get("x-amqp-routing-key", "") + request.raw_path
        )
