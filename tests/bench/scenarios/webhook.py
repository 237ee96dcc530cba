"""Webhook deliveries: published over AMQP, counted where they are posted to."""

from __future__ import annotations

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from urllib.parse import urlencode

from ..brokers import Broker
from ..client import Address, BenchError
from ..figures import Figures
from ..flow import Flow, fill
from ..frames import PERSISTENT, Message, Stream
from ..http_client import HttpConnection, request
from ..producer import Load
from ..scenario import Scenario, Settings
from ..sink import BACKLOG, COUNT, FIRST_NS, LAST_NS, WRONG, counters_for, serve
from ..spent import Spent
from ..worker import Crew, Worker

EXCHANGE = "bench-hooks"
QUEUE = "bench-backlog"
WAITING = 10_000
BODY = b"0123456789" * 20
DELIVERIES_PER_S = 4_000
LIMIT_FACTOR = 10
SUBSCRIBES_PER_S = 300
SUBSCRIBERS = 40
"""Who subscribe at the same time, each one after another."""
POLL_S = 0.01
FORM = "application/x-www-form-urlencoded"
POINTS = f"/endpoint/x/{EXCHANGE}"


def _listen() -> socket.socket:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(BACKLOG)
    return listener


def _subscription(
    address: Address,
    mode: str,
    port: int,
    number: int,
    source: str = f"x/{EXCHANGE}",
    in_flight: int = 1,
) -> bytes:
    form = {
        "hub.mode": mode,
        "hub.callback": f"http://127.0.0.1:{port}/hook/{number}",
        "hub.topic": "#",
        "hub.verify": "sync",
        "hub.in_flight": str(in_flight),
    }
    body = urlencode(form).encode()
    return request(address, "POST", f"/subscribe/{source}", body, FORM)


def _wait(counters: memoryview, wanted: int, limit_s: float) -> None:
    deadline = time.monotonic() + limit_s
    while counters[COUNT] < wanted and time.monotonic() < deadline:
        time.sleep(POLL_S)


def _deliver(
    broker: Broker, counters: memoryview, count: int, copies: int, limit_s: float
) -> Figures:
    message = Message(EXCHANGE, "bench.key", BODY, PERSISTENT)
    load = Load(limit_s, limit=count)
    spent = Spent(broker)
    fill(broker, Flow((), ((partial(Stream.repeat, message, 100), load),)))
    _wait(counters, count * copies, limit_s)
    line = _figures(spent, counters, count * copies, limit_s)
    per_hook = [counters[WRONG + 1 + number] for number in range(copies)]
    if set(per_hook) != {count}:
        line.note = f"repeats: {sum(per_hook) - count * copies}"
    return line


def _figures(spent: Spent, counters: memoryview, wanted: int, limit_s: float) -> Figures:
    posts = counters[COUNT]
    line = Figures(None, None, spent.cpu_us(posts), spent.peak_mb())
    if posts > 1:
        line.out_rate = (posts - 1) / ((counters[LAST_NS] - counters[FIRST_NS]) / 1e9)
    if counters[WRONG]:
        raise BenchError(f"{counters[WRONG]} of {posts} POSTs had another body")
    if posts < wanted:
        raise BenchError(f"{posts} of {wanted} POSTs in {limit_s:.0f} s")
    return line


def webhooks(broker: Broker, settings: Settings, *, copies: int) -> Figures:
    """Out: POSTs per second that came in, of all subscriptions together."""
    assert broker.http is not None
    counters = counters_for(copies)
    listener = _listen()
    port = listener.getsockname()[1]
    count = max(1, int(DELIVERIES_PER_S * settings.seconds / copies))
    with Crew() as crew:
        sink: Worker = crew.hire(serve, listener, counters, BODY)
        crew.go()
        hub = HttpConnection(broker.http)
        hub.ask(request(broker.http, "PUT", f"{POINTS}?amqp.exchange_type=topic"), 201)
        for number in range(copies):
            hub.ask(_subscription(broker.http, "subscribe", port, number), 204)
        limit_s = settings.seconds * LIMIT_FACTOR
        line = _deliver(broker, counters, count, copies, limit_s)
        for number in range(copies):
            hub.ask(_subscription(broker.http, "unsubscribe", port, number), 204)
        hub.ask(request(broker.http, "DELETE", POINTS), 204)
        hub.close()
        sink.pipe.send("stop")
        sink.result(limit_s)
    return line


def backlog(broker: Broker, settings: Settings, *, in_flight: int) -> Figures:
    """Out: POSTs per second to the one subscriber of a queue in which all messages wait already."""
    assert broker.http is not None
    counters = counters_for(1)
    listener = _listen()
    port = listener.getsockname()[1]
    limit_s = settings.seconds * LIMIT_FACTOR
    points = f"/endpoint/q/{QUEUE}"
    with Crew() as crew:
        sink: Worker = crew.hire(serve, listener, counters, BODY)
        crew.go()
        hub = HttpConnection(broker.http)
        hub.ask(request(broker.http, "PUT", points), 201)
        subscribe = partial(_subscription, broker.http, source=f"q/{QUEUE}", in_flight=in_flight)
        for waiting in (1, WAITING):  # the first makes what is made once: 0.6 s of CPU
            load = Load(limit_s, limit=waiting)
            message = Message("", QUEUE, BODY, PERSISTENT)
            fill(broker, Flow((), ((partial(Stream.repeat, message, 100), load),)))
            counters[COUNT] = counters[FIRST_NS] = 0
            spent = Spent(broker)
            hub.ask(subscribe("subscribe", port, 0), 204)
            _wait(counters, waiting, limit_s)
            line = _figures(spent, counters, waiting, limit_s)
            if waiting == 1:
                hub.ask(subscribe("unsubscribe", port, 0), 204)
        hub.ask(subscribe("unsubscribe", port, 0), 204)
        hub.ask(request(broker.http, "DELETE", points), 204)
        hub.close()
        sink.pipe.send("stop")
        sink.result(limit_s)
    return line


def subscribes(broker: Broker, settings: Settings) -> Figures:
    """In: subscribes per second, each verified by a quick callback, many at the same time."""
    address = broker.http
    assert address is not None
    listener = _listen()
    port = listener.getsockname()[1]
    each = max(1, int(SUBSCRIBES_PER_S * settings.seconds / SUBSCRIBERS))
    with Crew() as crew, ThreadPoolExecutor(SUBSCRIBERS) as pool:
        sink: Worker = crew.hire(serve, listener, counters_for(1), BODY)
        crew.go()
        hub = HttpConnection(address)
        hub.ask(request(address, "PUT", f"{POINTS}?amqp.exchange_type=topic"), 201)

        def ask(mode: str, first: int) -> None:
            own = HttpConnection(address)
            for number in range(first, first + each):
                own.ask(_subscription(address, mode, port, number), 204)
            own.close()

        firsts = range(0, each * SUBSCRIBERS, each)
        ask("subscribe", each * SUBSCRIBERS)  # what the first one waits for is made
        spent, begun_s = Spent(broker), time.monotonic()
        list(pool.map(partial(ask, "subscribe"), firsts))
        rate = each * SUBSCRIBERS / (time.monotonic() - begun_s)
        line = Figures(rate, None, spent.cpu_us(each * SUBSCRIBERS), spent.peak_mb())
        list(pool.map(partial(ask, "unsubscribe"), [*firsts, each * SUBSCRIBERS]))
        hub.ask(request(address, "DELETE", POINTS), 204)
        hub.close()
        sink.pipe.send("stop")
        sink.result(settings.seconds * LIMIT_FACTOR)
    return line


SCENARIOS = (
    Scenario("subscribe", subscribes, 300, fresh=True, http=True),
    Scenario("webhooks-1", partial(webhooks, copies=1), 3_000, fresh=True, http=True),
    Scenario("webhooks-50", partial(webhooks, copies=50), 3_000, fresh=True, http=True),
    Scenario("webhook-backlog", partial(backlog, in_flight=1), 3_000, fresh=True, http=True),
    Scenario("webhook-backlog-10", partial(backlog, in_flight=10), 6_000, fresh=True, http=True),
)
