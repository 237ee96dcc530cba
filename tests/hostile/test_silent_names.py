"""Callbacks under names whose servers never answer."""

from __future__ import annotations

import httpx

from tests.support.dns import SILENT, Name, dns
from tests.support.http import Answer, Callback
from tests.support.process import wait_until
from tests.support.server import WarrenServer

from .support import assert_serves

AUTH = ("guest", "guest")
NAMES = 100


def test_names_that_never_resolve_do_not_stop_deliveries(callback: Callback) -> None:
    # Each delivery needs a connection, and each connection an address.
    callback.default = Answer(headers={"Connection": "close"})
    zone_of = {"target.example": Name(["127.0.0.1"], ttl_s=0), "*.silent.example": SILENT}
    with dns(zone_of) as zone, WarrenServer(args=["--dns-servers", zone.server]) as server:
        with httpx.Client(base_url=server.http_url, auth=AUTH) as client:
            client.put("/endpoint/x/news")
            url = callback.url.replace("127.0.0.1", "target.example")
            assert subscribe(client, url, "sync") == 204
            for number in range(NAMES):
                silent = f"http://{number}.silent.example:{callback.port}/"
                assert subscribe(client, silent, "async") == 202
            wait_until(lambda: len(zone.asked) > 20, 60.0, "silent names that are asked for")
            for number in range(1, 6):
                client.post("/endpoint/x/news?hub.topic=k", content=b"%d" % number)
                callback.wait(number, 60.0)
        assert [one.body for one in callback.deliveries] == [b"1", b"2", b"3", b"4", b"5"]
        assert_serves(server)


def subscribe(client: httpx.Client, callback: str, verify: str) -> int:
    form = {
        "hub.mode": "subscribe",
        "hub.callback": callback,
        "hub.topic": "k",
        "hub.verify": verify,
    }
    return client.post("/subscribe/x/news", data=form).status_code
