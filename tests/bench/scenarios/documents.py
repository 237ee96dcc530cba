"""Documents of feeds, read over HTTP: kept connections, one request in flight on each."""

from __future__ import annotations

import json
import time

from ..brokers import Broker
from ..client import Address, BenchError
from ..figures import Figures
from ..http_client import TIMEOUT_S, HttpConnection, request
from ..measure import percentile
from ..scenario import Scenario, Settings
from ..spent import Spent
from ..worker import Crew
from .http import ACCEPTED, repeat

ENTRIES = 50
NAME = "bench"
_JSON = "application/json"
_OK, _CREATED = 200, 201
_PARAGRAPHS = "<p>" + "Lorem ipsum dolor sit amet. " * 20 + "</p>"


def feeds_document(broker: Broker, settings: Settings) -> Figures:
    """In: requests for a document of 50 entries (44 kB), which is in memory."""
    assert broker.http is not None
    _fill(broker.http)
    data = request(broker.http, "GET", f"/feeds/{NAME}.atom")
    _wait_until_complete(broker.http, data)
    with Crew() as crew:
        worker = crew.hire(repeat, [broker.http], settings.seconds, data, 8, _OK)
        spent = Spent(broker)
        crew.go()
        times_s, seconds = worker.result(settings.seconds * 2 + 10)
    count = len(times_s)
    line = Figures(count / seconds, None, spent.cpu_us(count), spent.peak_mb())
    line.p50_ms, line.p99_ms = (percentile(times_s, one) * 1e3 for one in (50, 99))
    _remove(broker.http)
    return line


def _fill(address: Address) -> None:
    """Makes an output of an exchange, and publishes its entries."""
    connection = HttpConnection(address)
    exchange = f"/endpoint/x/{NAME}"
    connection.ask(request(address, "PUT", exchange), _CREATED)
    definition = json.dumps({"sources": [{"exchange": NAME}]}).encode()
    connection.ask(request(address, "PUT", _output(), definition, _JSON), _CREATED)
    for number in range(ENTRIES):
        item = {"id": f"urn:{number}", "title": f"Entry {number}", "content_html": _PARAGRAPHS}
        connection.ask(
            request(address, "POST", exchange, json.dumps(item).encode(), _JSON), ACCEPTED
        )
    connection.close()


def _wait_until_complete(address: Address, data: bytes) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while _entries(address, data) < ENTRIES:
        if time.monotonic() > deadline:
            raise BenchError(f"the document does not get its {ENTRIES} entries")
        time.sleep(0.05)


def _entries(address: Address, data: bytes) -> int:
    connection = HttpConnection(address)
    connection.ask(data, _OK)
    connection.close()
    return connection.body.count(b"<entry>")


def _remove(address: Address) -> None:
    connection = HttpConnection(address)
    for path in (_output(), f"/endpoint/x/{NAME}"):
        connection.ask(request(address, "DELETE", path), 204)
    connection.close()


def _output() -> str:
    return f"/api/hub/outputs/{NAME}"


SCENARIOS = (Scenario("feeds-document", feeds_document, 3_000, http=True),)
