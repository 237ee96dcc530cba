"""README's story on three nodes, and what the end of one of them does to it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from tests.conformance.webhooks import Site
from tests.support.http import Answer, Callback
from tests.support.hub_on_rabbitmq import HubOnRabbitMQ, prepare
from tests.support.ports import free_port
from tests.support.process import terminate, wait_until
from tests.support.rabbitmq import RabbitMQServer, missing
from tests.support.rabbitmq_cluster import RabbitMQCluster
from tests.test_readme import run_minute

from .load import Arrivals, Load

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.promise,
    pytest.mark.timeout(1_800),
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
]
START_S = 900.0
WAIT_S = 240.0
STARTS = 3
PAUSE_S = 0.02


class Documented:
    """`make cluster`, with other ports."""

    host = "127.0.0.1"

    def __init__(self, directory: Path) -> None:
        self.http_port, self.amqp_port = free_port(), free_port()
        self._log = directory / "cluster.log"
        ports = ["--http-port", str(self.http_port), "--amqp-port", str(self.amqp_port)]
        self._command = [sys.executable, "-m", "tests.cluster", *ports]

    @property
    def http_url(self) -> str:
        return f"http://{self.host}:{self.http_port}"

    @property
    def management_url(self) -> str:
        return f"http://{self.host}:{self.http_port + 1}"

    def output(self) -> str:
        return self._log.read_text()

    def __enter__(self) -> Documented:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        wait_until(
            lambda: "ready" in self.output() or self._process.poll() is not None, START_S, "ready"
        )
        assert self._process.poll() is None, self.output()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGINT)
        terminate(self._process, START_S, self.output)
        assert self._process.returncode == 0, self.output()


def test_the_minute_of_readme(tmp_path: Path) -> None:
    with Documented(tmp_path) as server:
        run_minute(tmp_path, server, server.management_url)


@pytest.fixture(scope="module")
def cluster() -> Iterator[RabbitMQCluster]:
    with RabbitMQCluster("rabbitmq_management") as cluster:
        prepare(cluster.any_node)
        yield cluster


@pytest.fixture(scope="module")
def site(cluster: RabbitMQCluster) -> Iterator[Site]:
    first, *others = cluster.nodes
    with HubOnRabbitMQ(first, others=others) as server, Site(server) as site:
        yield site
        assert "Traceback" not in server.output(), server.output()


@pytest.fixture
def callbacks() -> Iterator[Sequence[Callback]]:
    with ExitStack() as stack:
        yield [stack.enter_context(Callback()) for _ in range(3)]


def subscribed(site: Site, callbacks: Sequence[Callback]) -> str:
    """Subscribes each in its way to a new exchange, whose name it returns."""
    exchange = site.exchange()
    strict, parallel, failing = callbacks
    failing.script(*[Answer(500)] * 3)
    site.subscribe(exchange, strict, order="strict")
    site.subscribe(exchange, parallel, in_flight="10")
    site.subscribe(exchange, failing)
    return exchange[2:]


def more(load: Load, count: int = 50) -> None:
    wanted = len(load.confirmed) + count
    wait_until(lambda: len(load.confirmed) >= wanted, WAIT_S, f"{count} confirms, {load.failures}")


@contextmanager
def under_load(
    cluster: RabbitMQCluster, site: Site, callbacks: Sequence[Callback]
) -> Iterator[Load]:
    """Publishes before, during and after a fault: all that was confirmed arrives, whatever happens,
    and each message under one id."""
    exchange = subscribed(site, callbacks)
    load = Load(site.server.http_url, cluster.nodes, exchange, PAUSE_S)
    arrivals = Arrivals(callbacks)
    load.start()
    try:
        more(load)
        yield load
        more(load)
    finally:
        load.end()
    wait_until(lambda: not arrivals.missing(load.confirmed), WAIT_S, "all that was confirmed")
    assert not arrivals.with_other_ids()


@pytest.mark.parametrize("how", ["killed", "halted"])
def test_a_node_that_is_lost(
    cluster: RabbitMQCluster, site: Site, callbacks: Sequence[Callback], how: str
) -> None:
    """The one that the hub is connected to: killed, or silent with its connections open."""
    lost = cluster.node_of_the_hub()
    end, begin = (lost.kill, lost.start) if how == "killed" else (lost.halt, lost.go_on)
    with under_load(cluster, site, callbacks) as load:
        end()
        try:
            more(load)
        finally:
            begin()
    assert {one for one in load.failures if one.startswith("HTTP")} <= {"HTTP 503"}


def test_all_nodes_are_killed(
    cluster: RabbitMQCluster, site: Site, callbacks: Sequence[Callback]
) -> None:
    with under_load(cluster, site, callbacks):
        for node in cluster.nodes:
            node.kill()
        for node in cluster.nodes:
            node.spawn()
        for node in cluster.nodes:
            await_start(node)


def await_start(node: RabbitMQServer) -> None:
    """Begins a node again that ends while it starts, as supervisors do: the flags of another node
    that has just begun can't be read."""
    for _ in range(STARTS):
        try:
            node.await_start()
        except RuntimeError:
            node.spawn()
        else:
            return
    node.await_start()


def test_a_node_that_delivers_nothing(
    cluster: RabbitMQCluster, site: Site, callbacks: Sequence[Callback]
) -> None:
    """Its log of quorum queues has ended, as when its disk is full, and the node goes on."""
    lost = cluster.node_of_the_hub()
    with under_load(cluster, site, callbacks):
        lost.ctl("eval", "supervisor:terminate_child(ra_systems_sup, quorum_queues).")
    assert f":{lost.port}: it has confirmed" in site.server.output()
    lost.kill()
    lost.start()


def test_without_a_majority_nothing_is_confirmed(
    cluster: RabbitMQCluster, site: Site, callback: Callback
) -> None:
    exchange = site.exchange()
    site.subscribe(exchange, callback)
    _, *others = cluster.nodes
    for node in others:
        node.kill()
    with httpx.Client(base_url=site.server.http_url, auth=("guest", "guest"), timeout=60) as http:
        answer = http.post(f"/endpoint/{exchange}", content=b"1")
        assert answer.status_code == 503, answer.text
        for node in others:
            node.spawn()
        for node in others:
            await_start(node)

        def is_confirmed() -> bool:
            return http.post(f"/endpoint/{exchange}", content=b"2").status_code == 202

        wait_until(is_confirmed, WAIT_S, "a confirm")
    wait_until(lambda: b"2" in {one.body for one in callback.deliveries}, WAIT_S, "the delivery")
