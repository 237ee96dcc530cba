"""Callbacks that take every question and answer none."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.support.dns import Name, dns
from tests.support.http import Answer, Callback
from tests.support.server import WarrenServer
from warrenmq.hub.verification.verify import SLOTS_PER_TARGET

from .support import assert_serves

DOMAINS = 3
REQUESTS_PER_DOMAIN = 300
NAMES = 300


class Tarpit(Callback):
    host = "127.0.0.2"


@pytest.mark.timeout(300)
def test_many_tarpits_do_not_stop_other_verifications(callback: Callback) -> None:
    names = {f"*.tarpit{domain}.example": Name([Tarpit.host]) for domain in range(DOMAINS)}
    with dns(names) as zone, Tarpit() as tarpit:
        tarpit.refusal = Answer(hang=True)
        flags = ["--dns-servers", zone.server, "--hub-user", "guest", "--verify-timeout-s", "600"]
        with WarrenServer(args=flags) as server:
            httpx.put(f"{server.http_url}/endpoint/x/news", auth=("guest", "guest"))
            with ThreadPoolExecutor(DOMAINS) as attackers:
                answers = attackers.map(
                    lambda domain: attack(server, tarpit, domain), range(DOMAINS)
                )
                assert sum(answers, Counter()) == {202: DOMAINS * REQUESTS_PER_DOMAIN}
            tarpit.wait_verifications(SLOTS_PER_TARGET, 60.0)
            assert subscribe(server, callback.url) == 202
            callback.wait_verifications(1, 60.0)
            # None of the tarpits had to answer, or to time out, before.
            assert len(tarpit.requests) == SLOTS_PER_TARGET
            assert_serves(server)


def attack(server: WarrenServer, tarpit: Tarpit, domain: int) -> Counter[int]:
    transport = httpx.HTTPTransport(local_address=f"127.0.0.{10 + domain}")
    with httpx.Client(transport=transport, timeout=60) as client:
        return Counter(
            subscribe(
                server,
                f"http://{number % NAMES}.tarpit{domain}.example:{tarpit.port}/{number}",
                client,
            )
            for number in range(REQUESTS_PER_DOMAIN)
        )


def subscribe(server: WarrenServer, callback: str, client: httpx.Client | None = None) -> int:
    form = {
        "hub.mode": "subscribe",
        "hub.topic": f"{server.http_url}/endpoint/x/news?hub.topic=k",
        "hub.callback": callback,
    }
    return (client or httpx).post(f"{server.http_url}/hub", data=form).status_code
