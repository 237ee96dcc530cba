"""Hubs that share a RabbitMQ and a PostgreSQL (docs/scaling.md): one is active, the others wait."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import httpx
import pytest

from tests.app.routes.test_tunnel_streams import UPGRADE, event, text
from tests.conformance.webhooks import AUTH, JSON, WAIT_S, Site, SteppedCallback
from tests.support.certificates import Authority
from tests.support.hub_on_rabbitmq import HubOnRabbitMQ
from tests.support.ports import free_port
from tests.support.postgresql import PostgreSQLServer
from tests.support.process import wait_until
from tests.support.rabbitmq import RabbitMQServer
from tests.support.tunnels import Answer, Application, Tunnels, response
from warrenmq.app.peers.hops import Hops

TAKE_OVER_S = 60.0
LOGIN = aiohttp.encode_basic_auth(*AUTH)


class Pair:
    """Two hubs with the same database and key. `active` is the one that serves."""

    def __init__(self, node: RabbitMQServer, database: str, folder: Path) -> None:
        self.database = database
        self.key_file = folder / "hub.key"
        self.arguments = ["--database", database, "--hub-key-file", str(self.key_file)]
        self.authority = Authority(folder)
        self.https_ports: dict[HubOnRabbitMQ, int] = {}
        self.active, self.standby = (self._hub(node) for _ in range(2))

    def _hub(self, node: RabbitMQServer) -> HubOnRabbitMQ:
        cert, key = self.authority.issue(HubOnRabbitMQ.host)
        tls = ["--tls-cert", cert, "--tls-key", key, "--https-port", str(port := free_port())]
        hub = HubOnRabbitMQ(node, [*self.arguments, *tls])
        self.https_ports[hub] = port
        return hub

    def https(self, hub: HubOnRabbitMQ) -> httpx.Client:
        url = f"https://{hub.host}:{self.https_ports[hub]}"
        trust = self.authority.client_context()
        return httpx.Client(base_url=url, auth=AUTH, verify=trust, timeout=WAIT_S)

    def swap(self) -> None:
        """Waits until the standby is active."""
        self.active, self.standby = self.standby, self.active
        wait_until(lambda: is_active(self.active), TAKE_OVER_S, "the standby to be active")

    def publish(self, exchange: str, body: bytes) -> None:
        with Site(self.active) as site:
            site.publish(exchange, body)


def is_active(hub: HubOnRabbitMQ) -> bool:
    try:
        answer = httpx.get(f"{hub.http_url}/health/ready", timeout=WAIT_S)
    except httpx.TransportError:
        return False
    return bool(answer.json()["status"] == "ok")


@pytest.fixture(scope="module")
def pair(
    node: RabbitMQServer, postgresql: PostgreSQLServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    url = postgresql.create()
    pair = Pair(node, url, tmp_path_factory.mktemp("pair"))
    with pair.active, pair.standby:
        yield pair
        for hub in (pair.active, pair.standby):
            assert "Traceback" not in hub.output(), hub.output()
    postgresql.drop(url)


@pytest.fixture
def site(pair: Pair) -> Iterator[Site]:
    """The active hub, as the test begins."""
    with Site(pair.active) as site:
        yield site


@pytest.fixture(params=["http", pytest.param("https", marks=pytest.mark.thorough)])
def other(pair: Pair, request: pytest.FixtureRequest) -> Iterator[Site]:
    """The standby, as the test begins."""
    with Site(pair.standby) as site:
        if request.param == "https":
            site.http = pair.https(pair.standby)
        yield site


@pytest.mark.promise
def test_a_standby_takes_over_from_a_killed_hub(pair: Pair, site: Site) -> None:
    """With the deliveries that were in flight, under their ids, and in strict order."""
    exchange = site.exchange()
    bodies = [b"%d" % number for number in range(20)]
    with SteppedCallback() as parallel, SteppedCallback() as strict:
        site.subscribe(exchange, parallel, in_flight="5")
        site.subscribe(exchange, strict, order="strict")
        for body in bodies:
            site.publish(exchange, body)
        strict.let(3)
        wait_until(lambda: len(strict.deliveries) == 4, WAIT_S, "a fourth delivery in order")
        wait_until(lambda: parallel.inside == 5, WAIT_S, "five deliveries in flight")
        pair.active.kill()
        parallel.open = strict.open = True
        pair.swap()
        pair.standby.start()
        pair.publish(exchange, b"last")

        def is_complete() -> bool:
            return all(ids(one).keys() == {*bodies, b"last"} for one in (parallel, strict))

        wait_until(is_complete, WAIT_S, "all that was confirmed")
        assert all(len(found) == 1 for one in (parallel, strict) for found in ids(one).values())
        again = [one.body for one in strict.deliveries[4:]]
        assert again == [*bodies, b"last"][bodies.index(again[0]) :]


@pytest.mark.promise
def test_publishing_goes_on_while_no_hub_is_active(pair: Pair, site: Site, other: Site) -> None:
    """At a standby, with the answers of an active hub, and what has begun is finished by the hub
    that it becomes. What needs the active hub is passed on."""
    exchange = site.exchange()
    with (
        SteppedCallback() as callback,
        begun(pair.standby, f"/endpoint/{exchange}", b"begun") as half,
    ):
        callback.open = True
        site.subscribe(exchange, callback)
        expected = answers(site, exchange)
        assert [status for status, *_ in expected] == [202, 202, 202, 404, 400]
        alone = without(
            pair.active, pair.database, lambda: publish_alone(other, exchange, expected)
        )
        asyncio.run(alone)
        pair.swap()
        half.sendall(b"n")
        assert half.recv(1024).startswith(b"HTTP/1.1 202 ")
        pair.standby.start()
        wanted = {b"plain", b"json", b"[1]", b"[2]", b"alone", b"begun"}
        wait_until(lambda: ids(callback).keys() == wanted, WAIT_S, "all that was confirmed")


def publish_alone(standby: Site, exchange: str, expected: list[tuple[int, str, str]]) -> None:
    assert answers(standby, exchange) == expected
    standby.publish(exchange, b"alone")
    passed_on: list[dict[str, Any]] = [
        {"auth": ("guest", "wrong")},
        {"headers": {"Authorization": "Bearer token"}},
        {"auth": AUTH, "headers": {"Origin": str(standby.http.base_url)}},
        {"auth": AUTH, "headers": {"Cookie": "a=b"}},
        {"headers": [("Authorization", LOGIN)] * 2},
        {},
    ]
    for request in passed_on:
        given: dict[str, Any] = {"auth": None, **request}
        answer = standby.http.post(f"/endpoint/{exchange}", content=b"refused", **given)
        assert answer.status_code == 503 and "Retry-After" in answer.headers, answer.text


def answers(site: Site, exchange: str) -> list[tuple[int, str, str]]:
    """Of publishes: the status, the body and its type."""
    batch = {"hub.mode": "batch"}
    lines = {"Content-Type": "application/x-ndjson"}
    found = [
        site.http.post(f"/endpoint/{exchange}", content=b"plain"),
        site.http.post(f"/endpoint/{exchange}", content=b"json", headers=JSON),
        site.http.post(
            f"/%2F/endpoint/{exchange}", params=batch, content=b"[1]\n[2]\n", headers=lines
        ),
        site.http.post("/endpoint/x/missing", content=b"1"),
        site.http.post(f"/endpoint/{exchange}", params={"hub.unknown": "1"}),
    ]
    return [(one.status_code, one.text, one.headers.get("content-type", "")) for one in found]


async def without(active: HubOnRabbitMQ, database: str, act: Callable[[], None]) -> None:
    """Kills the active hub, and takes the lock of the database until the act is over."""
    session = await asyncpg.connect(database)
    number, schema = await session.fetchrow(
        "SELECT classid::int, objid::int FROM pg_locks JOIN pg_database d ON d.oid = database "
        "WHERE locktype = 'advisory' AND datname = current_database()"
    )
    lock = asyncio.create_task(session.execute("SELECT pg_advisory_lock($1, $2)", number, schema))
    active.kill()
    await lock
    act()
    await session.close()


@pytest.mark.thorough
@pytest.mark.promise
def test_nothing_is_lost_when_each_hub_is_replaced(pair: Pair, site: Site) -> None:
    """As a rolling upgrade does, while messages are published at whichever hub takes them."""
    exchange = site.exchange()
    confirmed: list[bytes] = []
    is_over = threading.Event()

    def publish() -> None:
        number = 0
        while not is_over.wait(0.02):
            number += 1
            for hub in (pair.active, pair.standby):
                url = f"{hub.http_url}/endpoint/{exchange}"
                try:
                    answer = httpx.post(url, content=b"%d" % number, auth=AUTH, timeout=WAIT_S)
                except httpx.TransportError:
                    continue
                if answer.status_code == 202:
                    confirmed.append(b"%d" % number)
                    break

    def more() -> None:
        wanted = len(confirmed) + 20
        wait_until(lambda: len(confirmed) >= wanted, 2 * WAIT_S, "confirmed messages")

    with SteppedCallback() as callback, ThreadPoolExecutor(1) as pool:
        callback.open = True
        site.subscribe(exchange, callback)
        publishing = pool.submit(publish)
        try:
            for _ in range(2):
                more()
                assert pair.active.stop() == 0
                pair.swap()
                pair.standby.start()
            more()
        finally:
            is_over.set()
        publishing.result()
        wait_until(lambda: ids(callback).keys() >= {*confirmed}, 2 * WAIT_S, "all confirmed")
        assert all(len(found) == 1 for found in ids(callback).values())


@pytest.mark.thorough
@pytest.mark.promise
def test_a_hub_that_has_lost_its_lock_ends(
    pair: Pair, site: Site, postgresql: PostgreSQLServer
) -> None:
    """It holds a delivery, and hears of nothing until the other one has taken over."""
    exchange = site.exchange()
    with SteppedCallback() as callback:
        site.subscribe(exchange, callback, order="strict")
        site.publish(exchange, b"1")
        wait_until(lambda: callback.inside == 1, WAIT_S, "a delivery in flight")
        os.kill(pair.active.pid, signal.SIGSTOP)
        postgresql.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted"
        )
        callback.open = True
        pair.swap()
        pair.publish(exchange, b"2")
        wait_until(lambda: ids(callback).keys() == {b"1", b"2"}, WAIT_S, "all that was confirmed")
        assert len(ids(callback)[b"1"]) == 1
    os.kill(pair.standby.pid, signal.SIGCONT)
    wait_until(lambda: not pair.standby.running, WAIT_S, "the end of the other hub")
    assert pair.standby.process.returncode == 1
    assert "another hub has taken over" in pair.standby.output()
    pair.standby.start()


def test_a_standby_passes_requests_on(site: Site, other: Site) -> None:
    """In both directions as they come, with what the active hub says of them."""
    assert f"listening on {other.server.http_url}" in other.server.output()
    with SteppedCallback() as callback:
        callback.open = True
        assert other.get("/health/live") == {"status": "ok"}
        assert other.get("/health/ready") == {"status": "standby", "warnings": []}
        exchange = other.exchange()
        other.subscribe(exchange, callback)
        path, body = f"/endpoint/{exchange}", bytes(range(256)) * 4096
        passed_on = {"X-Request-Id": "mine", "Cookie": "a=b"}
        pieces = (body[at : at + 50_000] for at in range(0, len(body), 50_000))
        with other.http.stream("GET", f"/stream/{exchange}") as stream:
            answer = other.http.post(path, content=pieces, headers=passed_on)
            assert answer.status_code == 202, answer.text
            assert answer.headers.get_list("x-request-id") == ["mine"]
            assert len(answer.headers.get_list("date")) == 1
            other.publish(exchange, b"live")
            assert any("live" in line for line in stream.iter_lines())
        wait_until(lambda: ids(callback).keys() == {body, b"live"}, WAIT_S, "both messages")
        assert other.http.head(path).status_code == site.http.head(path).status_code
        assert other.http.get("/nothing").status_code == 404
        made = other.http.put(f"/endpoint/q/{site.name()}").headers["location"]
        assert made.startswith(f"{other.http.base_url}/endpoint/q/")


def test_a_websocket_goes_through_a_standby(pair: Pair, site: Site, other: Site) -> None:
    exchange = site.exchange()
    url = f"{other.http.base_url}/stream/{exchange}"
    login, trust = {"Authorization": LOGIN}, pair.authority.client_context()

    async def read() -> str:
        async with (
            aiohttp.ClientSession() as http,
            http.ws_connect(url, headers=login, ssl=trust) as socket,
        ):
            await asyncio.to_thread(site.publish, exchange, b"live")
            async with asyncio.timeout(WAIT_S):
                text = ""
                while "live" not in text:
                    text = str(await socket.receive_str())
            return text

    assert "live" in asyncio.run(read())


def test_the_client_behind_a_standby_is_known(pair: Pair, site: Site) -> None:
    """By what the standby has signed, which others can't write."""
    elsewhere = httpx.HTTPTransport(local_address="127.0.0.2")
    url = f"{pair.standby.http_url}/endpoint/{site.exchange()}"
    with httpx.Client(transport=elsewhere, timeout=WAIT_S) as http:
        assert http.post(url, content=b"1", auth=("guest", "wrong")).status_code == 401

    def entries() -> list[Any]:
        found: list[Any] = site.get("/api/hub/audit", address="127.0.0.2")["entries"]
        return found

    wait_until(lambda: bool(entries()), WAIT_S, "the refused login in the audit log")
    forged = {"X-Warren-Hop": f"{int(time.time())} 127.0.0.1 http 1.1 {'0' * 64}"}
    for hub, status in ((pair.active, 403), (pair.standby, 503)):
        answer = httpx.get(f"{hub.http_url}/subscriptions", auth=AUTH, headers=forged)
        assert answer.status_code == status, answer.text


def test_what_a_standby_has_signed_is_for_one_login(pair: Pair) -> None:
    """Requests between hubs are not encrypted, so it may be read on the way."""
    login, cookie = (b"authorization", LOGIN.encode()), (b"cookie", b"a=b")
    url = httpx.URL(f"{pair.active.http_url}/subscriptions")
    scope = {
        "method": "GET", "raw_path": url.raw_path, "query_string": url.query, "scheme": "http",
        "http_version": "1.1", "client": ("127.0.0.1", 0),
        "headers": [(b"host", url.netloc), login, cookie],
    }  # fmt: skip
    hop = (b"x-warren-hop", Hops(pair.key_file).sign(scope))
    other = (b"authorization", aiohttp.encode_basic_auth("tony", "secret").encode())
    for fields, status in (
        ((login, cookie), 200),
        ((other, cookie), 403),
        ((login, (b"cookie", b"c=d")), 403),
        ((cookie,), 403),
    ):
        assert httpx.get(url, headers=[*fields, hop], timeout=WAIT_S).status_code == status


@pytest.fixture
def tunnels(pair: Pair) -> Iterator[Tunnels]:
    """Both ends of tunnels at the standby, as the test begins."""
    tunnels = Tunnels(pair.standby.http_port)
    yield tunnels
    tunnels.close()


@pytest.mark.thorough
@pytest.mark.promise
def test_a_tunnel_goes_through_a_standby(pair: Pair, site: Site, tunnels: Tunnels) -> None:
    """Also to a path of the hub's, and on after the active hub was killed."""
    enrolled, path = tunnels.enrol(site.name()), f"endpoint/{site.exchange()}"

    def ask() -> Answer:
        url = f"{enrolled.link('related')}{path}"
        return tunnels.ask("POST", url, f"Authorization: {LOGIN}", body=b"x")

    application = Application(
        tunnels.port, enrolled.link("first"), lambda line, body: response(line.encode() + body)
    )
    try:
        found = ask()
        assert (found.status, found.body) == (200, f"POST /{path} HTTP/1.1x".encode())
        pair.active.kill()
        pair.swap()
        pair.standby.start()
        wait_until(lambda: ask().status == 200, WAIT_S, "the application at the next hub")
    finally:
        application.stop()


@pytest.mark.thorough
@pytest.mark.parametrize("fields", [("Accept: text/event-stream",), UPGRADE])
def test_a_tunnel_is_a_stream_through_a_standby(
    site: Site, tunnels: Tunnels, fields: tuple[str, ...]
) -> None:
    """Which the active hub gives up when the application has gone."""
    enrolled = tunnels.enrol(label := site.name())
    stream = tunnels.begin("GET", enrolled.link("first"), *fields)
    stream.head()
    requestor = tunnels.begin("GET", enrolled.link("related"))
    request = json.loads(stream.frame()[1]) if fields == UPGRADE else event(stream)[1]
    assert request["client"].startswith("127.0.0.1:")
    assert base64.b64decode(request["message"]).startswith(b"GET / HTTP/1.1")
    if fields == UPGRADE:
        message = base64.b64encode(response(b"ok")).decode()
        text(stream, {"id": request["id"], "message": message})
    else:
        assert tunnels.reply(request["reply"], response(b"ok")).status == 202
    assert requestor.read().body == b"ok"

    def is_waiting() -> bool:
        found = site.get("/api/hub/tunnels")["tunnels"]
        return any(one["waiting_polls"] for one in found if one["label"] == label)

    wait_until(is_waiting, WAIT_S, "the application to wait")
    stream.close()
    wait_until(lambda: not is_waiting(), WAIT_S, "the end of the stream")


@pytest.mark.thorough
def test_where_the_active_hub_is(node: RabbitMQServer, postgresql_url: str, tmp_path: Path) -> None:
    """By what it listens on, or by the setting; a standby names it when it can't be reached."""
    shared = ["--database", postgresql_url, "--hub-key-file", str(tmp_path / "hub.key")]
    everywhere = HubOnRabbitMQ(node, [*shared, "--host", "0.0.0.0", "--allow-plaintext"])
    port = free_port()
    named = HubOnRabbitMQ(
        node, [*shared, "--http-port", str(port), "--hub-address", f"localhost:{port}"]
    )
    named.http_port = port

    def passes_on(active: HubOnRabbitMQ, standby: HubOnRabbitMQ, address: str) -> None:
        with Site(standby) as other:
            other.exchange()

            def can_not() -> None:
                answer = other.http.get("/health/ready")
                (said,) = answer.json()["warnings"]
                assert answer.status_code == 503
                assert said.startswith(f"the active hub can't be reached at {address}: ")

            asyncio.run(without(active, postgresql_url, can_not))
        wait_until(lambda: is_active(standby), TAKE_OVER_S, "the standby to be active")

    with everywhere, named:
        passes_on(everywhere, named, f"{socket.gethostname()}:{everywhere.http_port}")
        everywhere.start()
        passes_on(named, everywhere, f"localhost:{port}")


@pytest.mark.promise
def test_a_request_whose_hub_is_killed_is_not_answered_as_done(pair: Pair, site: Site) -> None:
    exchange = site.exchange()
    url = f"{pair.standby.http_url}/stream/{exchange}"
    with (
        begun(pair.standby, f"/subscribe/{exchange}", b"11") as half,
        httpx.stream("GET", url, auth=AUTH, timeout=WAIT_S) as cut,
    ):
        pair.active.kill()
        assert half.recv(1024).startswith(b"HTTP/1.1 502 ")
        with pytest.raises(httpx.RemoteProtocolError):
            cut.read()
    pair.swap()
    pair.standby.start()


def begun(hub: HubOnRabbitMQ, path: str, body: bytes) -> socket.socket:
    """A connection with a request of which all but the last octet is sent."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {LOGIN}\r\n"
    connection = socket.create_connection((hub.host, hub.http_port), WAIT_S)
    connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body[:-1])
    return connection


def test_a_hub_with_another_key_is_refused(
    pair: Pair, node: RabbitMQServer, tmp_path: Path
) -> None:
    key = tmp_path / "hub.key"
    for reason in ("there is no key at", "is not the key of the hubs"):
        other = HubOnRabbitMQ(node, [*pair.arguments, "--hub-key-file", str(key)])
        with pytest.raises(RuntimeError, match=reason), other:
            pass
        assert other.process.returncode == 2
        key.write_bytes(b"0" * 32)


def test_a_database_that_can_not_be_reached_may_be_later(node: RabbitMQServer) -> None:
    nowhere = HubOnRabbitMQ(node, ["--database", "postgresql://127.0.0.1:1/hub"])
    with pytest.raises(RuntimeError, match="database 'hub' at 127.0.0.1:1"), nowhere:
        pass
    assert nowhere.process.returncode == 5


def ids(callback: SteppedCallback) -> dict[bytes, set[str]]:
    """The webhook-ids of each body that was delivered."""
    found: dict[bytes, set[str]] = {}
    for one in callback.deliveries:
        found.setdefault(one.body, set()).add(one.headers["webhook-id"])
    return found
