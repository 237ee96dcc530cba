"""`/metrics` and a page of queues of a server with 50,000 of them, while others ask for something
small."""

from __future__ import annotations

import time
from functools import partial

from ..brokers import Broker
from ..client import Client, names
from ..figures import Figures, Goal
from ..http_client import HttpConnection, request
from ..measure import percentile
from ..scenario import Scenario, Settings
from ..spent import Spent
from ..worker import Crew
from .cold_queues import declare
from .http import repeat

QUEUE_COUNT = 50_000
ANSWER_MS, STALL_MS = 100.0, 10.0


def many_queues(broker: Broker, settings: Settings, *, target: str) -> Figures:
    """p50 and p99 are those of answers, one after the other; CPU is for one. What the others have
    waited at most, and what they wait without these requests, are in the note."""
    assert broker.http is not None
    queues = names("bench-metrics-", QUEUE_COUNT)
    client = Client(broker.address)
    count = declare(client, queues, b"")
    client.close()
    health = request(broker.http, "GET", "/health/live")
    asked = request(broker.http, "GET", target)
    with Crew() as crew:
        connection = HttpConnection(broker.http)
        quiet = crew.hire(repeat, broker.http, settings.seconds / 2, health, 1, 200)
        crew.go()
        quiet_s, _ = quiet.result(settings.seconds + 10)
    with Crew() as crew:
        others = crew.hire(repeat, broker.http, settings.seconds, health, 1, 200)
        spent = Spent(broker)
        crew.go()
        times_s, deadline = [], time.monotonic() + settings.seconds
        while time.monotonic() < deadline:
            times_s.append(connection.ask(asked, 200))
        waited_s, _ = others.result(settings.seconds * 2 + 10)
    connection.close()
    line = Figures(None, None, spent.cpu_us(len(times_s)), spent.peak_mb())
    line.p50_ms, line.p99_ms = (percentile(times_s, one) * 1e3 for one in (50, 99))
    stall_ms, quiet_ms = (percentile(found, 99) * 1e3 for found in (waited_s, quiet_s))
    line.note = f"{count:,} queues; others wait {stall_ms:.1f} ms at p99, {quiet_ms:.1f} without"
    line.goals.append(Goal(f"an answer <= {ANSWER_MS:.0f} ms", line.p50_ms <= ANSWER_MS))
    line.goals.append(Goal(f"others <= {STALL_MS:.0f} ms more", stall_ms - quiet_ms <= STALL_MS))
    return line


SCENARIOS = (
    Scenario("metrics", partial(many_queues, target="/metrics"), fresh=True, http=True),
    Scenario(
        "api-queues",
        partial(many_queues, target="/api/queues?page=1&page_size=100"),
        fresh=True,
        http=True,
    ),
)
