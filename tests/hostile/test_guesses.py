"""Passwords guessed through a proxy: attackers are slowed, and nobody pays for them."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.support.server import WarrenServer

ALICE = ("alice", "correct horse battery")
ATTACKER, HOME, OFFICE = "203.0.113.9", "203.0.113.1", "198.51.100.7"


@pytest.fixture(scope="module")
def proxied() -> Iterator[WarrenServer]:
    """Its clients come through a proxy on this machine, which is what the tests play."""
    env = {"WARREN_HTTP_PROXIES": "127.0.0.1"}
    with WarrenServer(dev=False, env=env, args=["--default-user", ALICE[0],
                      "--default-pass", ALICE[1]]) as server:  # fmt: skip
        yield server


def status(
    server: WarrenServer, client: str, password: str, /, name: str = ALICE[0], **fields: str
) -> int:
    """Of a request that the proxy passes on; `fields` are what the client claims."""
    headers = {"X-Forwarded-For": ", ".join(filter(None, [fields.pop("xff", ""), client]))}
    answer = httpx.get(server.http_url + "/endpoint/x/amq.topic", headers=headers | fields,
                       auth=(name, password), timeout=30)  # fmt: skip
    return answer.status_code


def test_an_attacker_locks_out_nobody_else(proxied: WarrenServer) -> None:
    assert status(proxied, HOME, ALICE[1]) == 200
    assert [status(proxied, ATTACKER, f"guess {n}") for n in range(6)] == [401] * 5 + [429]
    assert status(proxied, HOME, ALICE[1]) == 200
    assert status(proxied, OFFICE, ALICE[1]) == 200


def test_forwarded_headers_give_no_further_guesses(proxied: WarrenServer) -> None:
    attacker = "203.0.113.77"
    assert [status(proxied, attacker, f"guess {n}") for n in range(6)] == [401] * 5 + [429]
    assert status(proxied, attacker, "one more", xff="192.0.2.1") == 429
    assert status(proxied, attacker, "one more", Via="1.1 another") == 429
