"""Webhook deliveries: published over AMQP, counted where they are posted to."""

from __future__ import annotations

import socket
import time
from functools import partial
from urllib.parse import urlencode

from ..brokers import Broker
from ..client import BenchError
from ..figures import Figures
from ..flow import Flow, fill
from ..frames import PERSISTENT, Message, Stream
from ..http_client import HttpConnection, request
from ..producer import Load
from ..scenario import Scenario, Settings
from ..sink import BACKLOG, COUNT, FIRST_NS, LAST_NS, WRONG, counters_for, serve
from ..spent import Spent
from ..worker import Crew

EXCHANGE = "bench-hooks"
BODY = b"0123456789" * 20
DELIVERIES_PER_S = 4_000
LIMIT_FACTOR = 10
WINDOW = 100
"""Confirms count: RabbitMQ drops what a closed channel had not yet put into a quorum queue."""
POLL_S = 0.002
FORM = "application/x-www-form-urlencoded"


class Target:
    """The sink in a process of its own, and subscriptions to it of a topic exchange.

    Without `body` each POST is timed; there is room for the times of `timed` of them.
    """

    def __init__(
        self,
        broker: Broker,
        crew: Crew,
        subscriptions: int,
        body: bytes | None = None,
        timed: int = 0,
    ) -> None:
        assert broker.http is not None
        self._http = broker.http
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen(BACKLOG)
        self._port = listener.getsockname()[1]
        self.counters = counters_for(subscriptions, timed)
        self._times_at = WRONG + 1 + subscriptions
        crew.hire(serve, listener, self.counters, body, self._times_at)
        crew.go()
        self._ask("PUT", f"/endpoint/x/{EXCHANGE}?amqp.exchange_type=topic", 201)

    def _ask(self, method: str, target: str, wanted: int, body: bytes = b"") -> None:
        hub = HttpConnection(self._http)
        hub.ask(request(self._http, method, target, body, FORM), wanted)
        hub.close()

    def subscribe(self, path: str, key: str) -> None:
        form = {
            "hub.mode": "subscribe",
            "hub.callback": f"http://127.0.0.1:{self._port}/{path}",
            "hub.topic": key,
            "hub.verify": "sync",
        }
        self._ask("POST", f"/subscribe/x/{EXCHANGE}", 204, urlencode(form).encode())

    def times_s(self) -> list[float]:
        end = self._times_at + self.counters[COUNT]
        return [nanoseconds / 1e9 for nanoseconds in self.counters[self._times_at : end]]

    def wait(self, count: int, limit_s: float) -> None:
        """Raises `BenchError` when fewer POSTs come in that time."""
        deadline = time.monotonic() + limit_s
        while self.counters[COUNT] < count and time.monotonic() < deadline:
            time.sleep(POLL_S)
        if self.counters[COUNT] < count:
            raise BenchError(f"{self.counters[COUNT]} of {count} POSTs in {limit_s:.0f} s")


def webhooks(broker: Broker, settings: Settings, *, copies: int) -> Figures:
    """Out: POSTs per second that came in, of all subscriptions together."""
    count = max(1, int(DELIVERIES_PER_S * settings.seconds / copies))
    limit_s = settings.seconds * LIMIT_FACTOR
    message = Message(EXCHANGE, "bench.key", BODY, PERSISTENT)
    with Crew() as crew:
        target = Target(broker, crew, copies, BODY)
        for number in range(copies):
            target.subscribe(f"hook/{number}", "#")
        spent = Spent(broker)
        producer = (partial(Stream.repeat, message, 100), Load(limit_s, limit=count, window=WINDOW))
        fill(broker, Flow((), (producer,)))
        target.wait(count * copies, limit_s)
        return _figures(spent, target.counters, count, copies)


def _figures(spent: Spent, counters: memoryview, count: int, copies: int) -> Figures:
    posts = counters[COUNT]
    if counters[WRONG]:
        raise BenchError(f"{counters[WRONG]} of {posts} POSTs had another body")
    line = Figures(None, None, spent.cpu_us(posts), spent.peak_mb())
    if posts > 1:
        line.out_rate = (posts - 1) / ((counters[LAST_NS] - counters[FIRST_NS]) / 1e9)
    per_hook = [counters[WRONG + 1 + number] for number in range(copies)]
    if set(per_hook) != {count}:
        line.note = f"repeats: {sum(per_hook) - count * copies}"
    return line


SCENARIOS = (
    Scenario("webhooks-1", partial(webhooks, copies=1), 3_000, fresh=True, http=True),
    Scenario("webhooks-50", partial(webhooks, copies=50), 3_000, fresh=True, http=True),
)
