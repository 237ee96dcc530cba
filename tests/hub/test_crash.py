"""The real server, killed and started again."""

from __future__ import annotations

import os
from pathlib import Path

import httpx
import pytest

from tests.support.forks import FORKS
from tests.support.http import Callback
from tests.support.postgresql import PASSWORD, QUOTED_PASSWORD, PostgreSQLServer
from tests.support.process import wait_until
from tests.support.server import WarrenServer

pytestmark = pytest.mark.promise

AUTH = ("guest", "guest")


def put_news(server: WarrenServer) -> None:
    url = f"{server.http_url}/endpoint/x/news"
    asked = httpx.put(url, params={"amqp.exchange_type": "topic"}, auth=AUTH)
    assert asked.status_code in (201, 204)


def publish(server: WarrenServer, key: str, body: bytes) -> None:
    url = f"{server.http_url}/endpoint/x/news"
    assert httpx.post(url, params={"hub.topic": key}, content=body, auth=AUTH).status_code == 202


def subscribe(server: WarrenServer, callback: str) -> httpx.Response:
    form = {"hub.mode": "subscribe", "hub.callback": callback, "hub.topic": "eu.#"}
    form.update({"hub.verify": "sync", "hub.secret": "s3cret"})
    return httpx.post(f"{server.http_url}/subscribe/x/news", data=form, auth=AUTH, timeout=30)


def by_id(callback: Callback) -> dict[tuple[str, str], bytes]:
    """Of each subscription the messages, whose ids are the same in all."""
    return {(one.path, one.headers["webhook-id"]): one.body for one in callback.deliveries}


def test_deliveries_continue_without_the_database(
    callback: Callback, postgresql: PostgreSQLServer, postgresql_url: str
) -> None:
    env = {"WARREN_DATABASE": postgresql_url, "WARREN_LOG_LEVEL": "debug"}
    with WarrenServer(dev=True, env=env) as server:
        put_news(server)
        assert subscribe(server, callback.url).status_code == 204
        postgresql.kill()
        try:
            for _ in range(2):
                refused = subscribe(server, callback.url + "/second")
                assert refused.status_code == 503
                assert refused.json()["title"] == "Storage failed"
                assert str(postgresql.port) not in refused.text
            publish(server, "eu.fr", b"meanwhile")
            wait_until(lambda: bool(callback.deliveries), 20.0, "delivery in the outage")
            assert httpx.get(f"{server.http_url}/health/ready").status_code == 200
        finally:
            postgresql.start()
        wait_until(
            lambda: subscribe(server, callback.url + "/second").status_code == 204,
            20.0,
            "a subscribe after the outage",
        )
        server.kill()
        output = server.output()
        server.restart()
        publish(server, "eu.de", b"afterwards")
        # An outcome that the database did not take before the crash is repeated under its id.
        wait_until(lambda: len(by_id(callback)) == 3, 20.0, "deliveries to both")
        output += server.output()
    assert sorted(by_id(callback).values()) == [
        b"afterwards",
        b"afterwards",
        b"meanwhile",
    ]
    for secret in (PASSWORD, QUOTED_PASSWORD, "s3cret"):
        assert secret not in output
    assert "Traceback" not in output


def test_an_unusable_database_ends_the_start(postgresql: PostgreSQLServer, tmp_path: Path) -> None:
    ports = ["--amqp-port", "0", "--http-port", "0", "--data", str(tmp_path)]
    for url, expected in {
        postgresql.url("missing"): f"'missing' at 127.0.0.1:{postgresql.port}",
        f"mysql://warren:{QUOTED_PASSWORD}@host/hub": "is no PostgreSQL URL",
    }.items():
        done = FORKS.run(["serve", *ports, "--database", url], os.environ, "", 30)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert done.stderr.startswith("warren: ") and expected in done.stderr
        assert PASSWORD not in done.stderr and QUOTED_PASSWORD not in done.stderr
