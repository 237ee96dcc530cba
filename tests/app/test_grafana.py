"""The board and the alerts of docs/grafana, on a real server: their names exist, and a real
Prometheus evaluates them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pika
import pytest

from tests.app.rabbitmq_board import panels, variables
from tests.app.routes.test_metrics import samples
from tests.support import prometheus as prometheus_support
from tests.support.http import Callback
from tests.support.process import wait_until
from tests.support.prometheus import PrometheusServer
from tests.support.server import WarrenServer

GRAFANA = Path(__file__).parents[2] / "docs/grafana"
BOARD, ALERTS = GRAFANA / "warren.json", GRAFANA / "alerts.yml"
GUEST = ("guest", "guest")
CLUSTER = "prod-eu"
OF_LOAD = {"WarrenEventLoopLate", "WarrenDiskSlow"}
"""Alerts that a machine which runs other tests as well may bring near."""
NAME = re.compile(r"\b(?:rabbitmq|warren)_\w+")


def queries() -> list[str]:
    """The queries of the board, with its variables filled in."""
    board: dict[str, Any] = json.loads(BOARD.read_text())
    found = [one["expr"] for panel in board["panels"] for one in panel.get("targets", ())]
    return [one.replace("$instance", ".+").replace("$__rate_interval", "1m") for one in found]


def use(server: WarrenServer, callback: Callback) -> None:
    """Publishes, delivers, and reports a run and an archive: all families have samples then."""
    connection = pika.BlockingConnection(pika.URLParameters(server.amqp_url))
    connection.channel().queue_declare("log", durable=True, arguments={"x-queue-type": "stream"})
    connection.close()
    form = {"hub.mode": "subscribe", "hub.topic": "#", "hub.callback": callback.url}
    with httpx.Client(base_url=server.http_url, auth=GUEST, timeout=60) as http:
        http.put("/api/cluster-name", json={"name": CLUSTER}).raise_for_status()
        http.post("/subscribe/x/amq.topic", data=form).raise_for_status()
        http.post("/endpoint/x/amq.topic").raise_for_status()
        callback.wait(1)
        for path, body in (
            ("runs/archive/one", {"state": "running", "lag": 7}),
            ("archives/%2F/log/cold", {"offset": 0}),
        ):
            http.put(f"/api/hub/pipeline/{path}", json=body).raise_for_status()


def is_counted(server: WarrenServer) -> bool:
    attempts = samples(httpx.get(f"{server.http_url}/metrics").text)
    return "warren_delivery_attempts_total" in attempts


@pytest.fixture(scope="module")
def server() -> Iterator[WarrenServer]:
    with WarrenServer() as warren, Callback() as callback:
        use(warren, callback)
        wait_until(lambda: is_counted(warren), 10, "the delivery is counted")
        yield warren


@pytest.fixture(scope="module")
def prometheus(server: WarrenServer) -> Iterator[PrometheusServer]:
    if reason := prometheus_support.missing():
        pytest.skip(reason)
    with PrometheusServer(server.http_url.removeprefix("http://"), ALERTS) as found:
        yield found


@pytest.mark.parametrize("path", [BOARD, ALERTS], ids=lambda path: path.name)
def test_all_names_exist(server: WarrenServer, path: Path) -> None:
    known = samples(httpx.get(f"{server.http_url}/metrics").text).keys()
    named = set(NAME.findall(path.read_text()))
    assert named and named <= known, named - known


def test_every_query_of_the_board_has_an_answer(prometheus: PrometheusServer) -> None:
    unanswered = [query for query in queries() if not prometheus.query(query)]
    assert unanswered == []


def test_the_alerts_are_evaluated_and_quiet(prometheus: PrometheusServer) -> None:
    def healths() -> set[str]:
        return {rule["health"] for rule in prometheus.rules().values()}

    wait_until(lambda: healths() == {"ok"}, 20, "all rules are evaluated")
    states = {name: rule["state"] for name, rule in prometheus.rules().items()}
    assert states.keys() > OF_LOAD
    loud = {name: state for name, state in states.items() if state != "inactive"}
    assert loud.keys() <= OF_LOAD and set(loud.values()) <= {"pending"}, loud


def test_a_board_for_rabbitmq_shows_every_panel(prometheus: PrometheusServer) -> None:
    found = {title: prometheus.query(query) for title, query in panels(CLUSTER)}
    assert [title for title, series in found.items() if not series] == []
    assert float(found["connections"][0]["value"][1]) == 0
    assert found["queues by node"][0]["metric"].keys() == {"rabbitmq_node"}
    assert float(found["queues by node"][0]["value"][1]) >= 1
    (_, nodes), *_ = panels("another")
    assert prometheus.query(nodes) == []


def test_a_board_for_rabbitmq_has_its_menus(prometheus: PrometheusServer) -> None:
    for label, query in variables():
        assert prometheus.query(query)[0]["metric"][label], label
