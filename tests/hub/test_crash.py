"""The real server, killed and started again."""

from __future__ import annotations

import subprocess
from pathlib import Path

import httpx
import pytest

from tests.support.http import Answer, Callback
from tests.support.postgresql import PASSWORD, QUOTED_PASSWORD, PostgreSQLServer
from tests.support.process import wait_until
from tests.support.server import WarrenServer, warren_command

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


@pytest.fixture
def environment(either_database: str | None) -> dict[str, str]:
    return {} if either_database is None else {"WARREN_DATABASE": either_database}


def test_a_subscription_outlives_kill_9(callback: Callback, environment: dict[str, str]) -> None:
    with WarrenServer(dev=True, env=environment) as server:
        put_news(server)
        assert subscribe(server, callback.url).status_code == 204
        server.kill()
        server.restart()
        put_news(server)

        def is_delivered() -> bool:
            # Where the exchange did not outlive the crash, the hub sees it come back within
            # seconds; what is published before has no queue to wait in.
            publish(server, "eu.fr", b"bonjour")
            return bool(callback.deliveries)

        wait_until(is_delivered, 20.0, "delivery after the crash")
    assert callback.deliveries[0].body == b"bonjour"
    assert callback.deliveries[0].headers["X-Hub-Signature"].startswith("sha256=")
    assert len(callback.verifications) == 1


def test_what_was_accepted_is_verified_after_kill_9(
    callback: Callback, environment: dict[str, str]
) -> None:
    callback.refusal = Answer(hang=True)
    with WarrenServer(dev=True, env={**environment, "WARREN_HUB_USER": "guest"}) as server:
        queue = f"{server.http_url}/endpoint/q/kept"
        assert httpx.put(queue, auth=AUTH).status_code == 201
        # On disk when it is answered, and so is its queue.
        assert httpx.post(queue, content=b"bonjour", auth=AUTH).status_code == 202
        form = {"hub.mode": "subscribe", "hub.topic": queue, "hub.callback": callback.url}
        form["hub.secret"] = "s3cret"
        assert httpx.post(f"{server.http_url}/hub", data=form, timeout=30).status_code == 202
        assert callback.deliveries == []
        server.kill()
        callback.refusal = None
        server.restart()
        [delivery] = callback.wait(1, 20.0)
    assert callback.verifications[-1].query["hub.topic"] == queue
    assert delivery.body == b"bonjour"
    assert delivery.headers["X-Hub-Signature"].startswith("sha256=")


def test_the_broker_goes_on_while_the_database_is_down(
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


def test_a_second_warren_on_the_database_is_refused(postgresql_url: str) -> None:
    env = {"WARREN_DATABASE": postgresql_url}
    with WarrenServer(env=env) as first:
        with pytest.raises(RuntimeError, match="in use by another Warren"), WarrenServer(env=env):
            pass
        assert first.running


def test_a_database_that_can_not_be_used_ends_the_start(
    postgresql: PostgreSQLServer, tmp_path: Path
) -> None:
    ports = ["--amqp-port", "0", "--http-port", "0", "--data", str(tmp_path)]
    for url, expected in {
        postgresql.url("missing"): f"'missing' at 127.0.0.1:{postgresql.port}",
        f"mysql://warren:{QUOTED_PASSWORD}@host/hub": "is no PostgreSQL URL",
    }.items():
        done = subprocess.run(
            [*warren_command(), "serve", *ports, "--database", url],
            capture_output=True,
            text=True,
            timeout=30,
        )
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert done.stderr.startswith("warren: ") and expected in done.stderr
        assert PASSWORD not in done.stderr and QUOTED_PASSWORD not in done.stderr
