"""Publishing over HTTP: kept connections, one request in flight on each."""

from __future__ import annotations

import selectors
import time
from collections.abc import Sequence
from itertools import cycle, islice

from ..brokers import Broker
from ..client import Address, BenchError, Client
from ..figures import Figures
from ..flow import Flow, Standing
from ..http_client import HttpConnection, request
from ..measure import percentile
from ..scenario import Scenario, Settings
from ..spent import Spent
from ..worker import Control, Crew
from .throughput import QUEUES

CONNECTIONS = 32
BATCH = 1_000
BODY = bytes(200)
ACCEPTED = 202


def publish_request(address: Address, queue: str) -> bytes:
    return request(address, "POST", f"/endpoint/q/{queue}?hub.topic=bench", BODY)


def repeat(
    control: Control,
    addresses: Sequence[Address],
    seconds: float,
    data: bytes,
    at_once: int,
    wanted: int,
) -> tuple[list[float], float]:
    """Sends a request again and again, to each address in turn; gives the time of each one that was
    answered with the wanted status, and the time of all."""
    selector = selectors.DefaultSelector()
    connections = [HttpConnection(one) for one in islice(cycle(addresses), at_once)]
    control.ready()
    start = time.monotonic()
    sent_at = dict.fromkeys(connections, start)
    for connection in connections:
        selector.register(connection.socket, selectors.EVENT_READ, connection)
        connection.send(data)
    times_s, deadline, waiting = list[float](), start + seconds, at_once
    while waiting:
        for key, _ in selector.select(seconds):
            if not key.data.receive(wanted):
                continue
            now = time.monotonic()
            times_s.append(now - sent_at[key.data])
            if now < deadline:
                sent_at[key.data] = now
                key.data.send(data)
            else:
                waiting -= 1
                selector.unregister(key.fileobj)
    return times_s, time.monotonic() - start


def _measure(
    broker: Broker, settings: Settings, data: bytes, at_once: int, messages: int
) -> Figures:
    """In: messages of requests answered 202 per second; each is in the queue afterwards."""
    assert broker.http is not None
    with Standing(broker, Flow(QUEUES[:1], durable=True)), Crew() as crew:
        addresses = [broker.http, *broker.other_hubs]
        worker = crew.hire(repeat, addresses, settings.seconds, data, at_once, ACCEPTED)
        spent = Spent(broker)
        crew.go()
        times_s, seconds = worker.result(settings.seconds * 2 + 10)
        count = len(times_s) * messages
        line = Figures(count / seconds, None, spent.cpu_us(count), spent.peak_mb())
        line.p50_ms, line.p99_ms = (percentile(times_s, one) * 1e3 for one in (50, 99))
        _check_stored(broker, count)
        return line


def http_publish(broker: Broker, settings: Settings) -> Figures:
    """A message for each request."""
    assert broker.http is not None
    data = publish_request(broker.http, QUEUES[0])
    return _measure(broker, settings, data, CONNECTIONS, 1)


def http_batch(broker: Broker, settings: Settings) -> Figures:
    """A thousand lines to a request, four requests at a time."""
    assert broker.http is not None
    lines = b"\n".join(b'{"number": %d, "text": "%s"}' % (n, b"x" * 60) for n in range(BATCH))
    target = f"/endpoint/q/{QUEUES[0]}?hub.mode=batch&hub.topic=bench"
    data = request(broker.http, "POST", target, lines, "application/x-ndjson")
    return _measure(broker, settings, data, 4, BATCH)


def _check_stored(broker: Broker, count: int) -> None:
    client = Client(broker.address)
    stored = client.declare_queue(QUEUES[0], passive=True)
    client.close()
    if stored != count:
        raise BenchError(f"{count} messages were answered 202, {stored} are queued")


SCENARIOS = (
    Scenario("http-publish", http_publish, 6_000, http=True),
    Scenario("http-batch", http_batch, 100_000, http=True),
)
