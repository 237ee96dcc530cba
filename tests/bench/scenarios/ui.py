"""The web UI: how soon its first page is drawn, and what an open overview costs the server."""

from __future__ import annotations

import time
from functools import partial

from tests.browser.browsers import Browser, missing

from ..brokers import Broker
from ..client import BenchError, Client, names
from ..figures import Figures, Goal
from ..http_client import HttpConnection, request
from ..measure import percentile
from ..scenario import Scenario, Settings
from ..spent import Spent
from .cold_queues import declare
from .metrics import QUEUE_COUNT, many_queues

LIST = "/api/queues?page=1&page_size=50&sort=trouble&sort_reverse=true&without_hub=true"
PAINTS, PAINT_MS, CPU_SHARE = 10, 300.0, 0.02
ROUNDS_S = 10.0
"""The overview counts all queues twice meanwhile."""
SNAPSHOT = b"event: snapshot"
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]"


def overview(broker: Broker, settings: Settings) -> Figures:
    """The processor time that a second of the live stream takes, with very many queues; without
    the history and the first snapshot, which a page gets once."""
    assert broker.http is not None
    client = Client(broker.address)
    count = declare(client, names("bench-ui-", QUEUE_COUNT), b"")
    client.close()
    connection = HttpConnection(broker.http)
    connection.send(request(broker.http, "GET", "/api/warren/live"))
    received = connection.socket.recv(1 << 16)
    if not received.startswith(b"HTTP/1.1 200"):
        raise BenchError(received.decode(errors="replace"))
    while SNAPSHOT not in received:
        received = connection.socket.recv(1 << 16)
    spent, start, snapshots = Spent(broker), time.monotonic(), 0
    while time.monotonic() - start < max(settings.seconds, ROUNDS_S):
        snapshots += connection.socket.recv(1 << 16).count(SNAPSHOT)
    cpu_us = spent.cpu_us(1)
    share = (cpu_us or 0) / 1e6 / (time.monotonic() - start)
    connection.socket.close()
    line = Figures(cpu_us=spent.cpu_us(snapshots), rss_mb=spent.peak_mb())
    line.note = f"{count:,} queues: {share:.1%} of a core while the overview is open"
    line.goals.append(Goal(f"<= {CPU_SHARE:.0%} of a core", share <= CPU_SHARE))
    return line


def first_paint(broker: Broker, _: Settings) -> Figures:
    """From asking for the page to the first text, in Chromium."""
    assert broker.http is not None
    if reason := missing("chromium"):
        raise BenchError(reason)
    times_ms = []
    with Browser("chromium") as browser:
        for _number in range(PAINTS):
            page = browser.new_page()
            page.open(f"http://localhost:{broker.http.port}/")
            page.wait(PAINTED)
            times_ms.append(float(page.run(f"{PAINTED}.startTime")))
            page.close()
    line = Figures(p50_ms=percentile(times_ms, 50), p99_ms=percentile(times_ms, 99))
    assert line.p50_ms is not None
    line.goals.append(Goal(f"<= {PAINT_MS:.0f} ms", line.p50_ms <= PAINT_MS))
    return line


SCENARIOS = (
    Scenario("ui-overview", overview, fresh=True, http=True),
    Scenario("ui-queues", partial(many_queues, target=LIST), fresh=True, http=True),
    Scenario("ui-first-paint", first_paint, http=True),
)
