"""A new entry of a feed, from its poll to a callback that has subscribed to the feed's document."""

from __future__ import annotations

import json
import socket
import time
from urllib.parse import urlencode

from ..brokers import Broker
from ..client import Address, BenchError
from ..figures import Figures, Goal
from ..http_client import HttpConnection, request
from ..measure import percentile
from ..scenario import Scenario, Settings
from ..sink import BACKLOG, COUNT, LAST_NS, WRONG, counters_for, serve
from ..spent import Spent
from ..worker import Crew
from .feeds_poll import PORT, change_feeds, serve_feeds
from .webhook import FORM, POLL_S

NAME = "bench"
GOAL_S = 1.0
_LEAST = 20
_PATIENCE_S = 30.0


def feeds_push(broker: Broker, settings: Settings) -> Figures:
    """The time from the request to poll a feed with a new entry to its document at a callback."""
    assert broker.http is not None
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(BACKLOG)
    counters = counters_for(1)
    with Crew() as crew:
        crew.hire(serve, listener, counters, b"")
        crew.hire(serve_feeds)
        crew.go()
        _subscribe(broker.http, listener.getsockname()[1])
        spent, times_s = Spent(broker), list[float]()
        end_s = time.monotonic() + settings.seconds
        while len(times_s) < _LEAST or time.monotonic() < end_s:
            times_s.append(_pushed_s(broker.http, counters, len(times_s) + 1))
    line = Figures(None, None, spent.cpu_us(len(times_s)), spent.peak_mb())
    line.p50_ms, line.p99_ms = (percentile(times_s, one) * 1e3 for one in (50, 99))
    line.note = f"{len(times_s)} polls"
    line.goals.append(Goal(f"{GOAL_S:g} s at most", max(times_s) <= GOAL_S))
    return line


def _subscribe(address: Address, port: int) -> None:
    """Registers a feed, and has its document delivered to the sink."""
    hub = HttpConnection(address)
    feed = json.dumps({"url": f"http://127.0.0.1:{PORT}/0", "name": NAME}).encode()
    hub.ask(request(address, "POST", "/api/hub/feeds", feed, "application/json"), 201)
    form = {
        "hub.mode": "subscribe",
        "hub.topic": f"http://{address.host}:{address.port}/feeds/{NAME}.atom",
        "hub.callback": f"http://127.0.0.1:{port}/0",
    }
    hub.ask(request(address, "POST", "/hub", urlencode(form).encode(), FORM), 202)
    deadline, wanted = time.monotonic() + _PATIENCE_S, f"/feeds/{NAME}.atom".encode()
    hub.ask(request(address, "GET", "/api/hub/subscriptions"), 200)
    while wanted not in hub.body:
        if time.monotonic() > deadline:
            raise BenchError("the callback is not subscribed")
        hub.ask(request(address, "GET", "/api/hub/subscriptions"), 200)
    hub.close()


def _pushed_s(address: Address, counters: memoryview, count: int) -> float:
    change_feeds()
    start_ns, deadline = time.monotonic_ns(), time.monotonic() + _PATIENCE_S
    hub = HttpConnection(address)
    path = f"/api/hub/feeds/{NAME}/poll"
    hub.ask(request(address, "POST", path, b"{}", "application/json"), 200)
    hub.close()
    while counters[COUNT] < count:
        if time.monotonic() > deadline:
            raise BenchError(f"the document of poll {count} did not come in {_PATIENCE_S:g} s")
        time.sleep(POLL_S)
    assert counters[WRONG + 1] == count, "each change is pushed once"
    return (counters[LAST_NS] - start_ns) / 1e9


SCENARIOS = (Scenario("feeds-push", feeds_push, fresh=True, http=True),)
