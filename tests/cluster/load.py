"""Publishers over HTTP and AMQP that know what was confirmed, and callbacks that know what came."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import httpx
import pika
from pika.adapters.utils.connection_workflow import AMQPConnectorException
from pika.exceptions import AMQPError

from tests.support.http import Callback
from tests.support.rabbitmq import RabbitMQServer

AUTH = ("guest", "guest")
ANSWER_S = 60.0
"""Longer than the hub waits for a confirm."""
AGAIN_S = 0.2
LOST_S = 10


class Load:
    """Publishes numbers to a topic exchange, in two threads, until `end`. A number that has failed
    is not repeated: it may arrive or not."""

    def __init__(
        self, hub_url: str, nodes: Sequence[RabbitMQServer], exchange: str, pause_s: float
    ) -> None:
        self._endpoint = f"{hub_url}/endpoint/x/{exchange}"
        self._nodes = nodes
        self._exchange = exchange
        self._pause_s = pause_s
        self.confirmed: list[bytes] = []
        self.failures: Counter[str] = Counter()
        """Publishes without a confirm, by their reason."""
        self._over = threading.Event()
        self._pool = ThreadPoolExecutor(2)
        self._publishing: list[Future[None]] = []

    def start(self) -> None:
        works = self._publish_http, self._publish_amqp
        self._publishing = [self._pool.submit(one) for one in works]

    def end(self) -> None:
        """Raises what a thread has not expected."""
        self._over.set()
        self._pool.shutdown()
        for one in self._publishing:
            one.result()

    def _publish_http(self) -> None:
        with httpx.Client(auth=AUTH, timeout=ANSWER_S) as http:
            for number in itertools.count():
                if self._over.wait(self._pause_s):
                    return
                try:
                    answer = http.post(
                        self._endpoint, content=b"h%d" % number, params={"hub.topic": "http"}
                    )
                except httpx.TransportError as error:
                    self._failed(type(error).__name__)
                    continue
                if answer.status_code == 202:
                    self.confirmed.append(b"h%d" % number)
                else:
                    self._failed(f"HTTP {answer.status_code}")

    def _publish_amqp(self) -> None:
        numbers = itertools.count()
        for node in itertools.cycle(self._nodes):
            if self._over.is_set():
                return
            try:
                self._publish_at(node, numbers)
            except (AMQPError, AMQPConnectorException, OSError) as error:
                self._failed(f"AMQP {type(error).__name__}")

    def _publish_at(self, node: RabbitMQServer, numbers: itertools.count[int]) -> None:
        parameters = pika.URLParameters(node.amqp_url)
        parameters.heartbeat = parameters.socket_timeout = LOST_S
        parameters.stack_timeout = parameters.blocked_connection_timeout = 2 * LOST_S
        with pika.BlockingConnection(parameters) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            while not self._over.wait(self._pause_s):
                body = b"a%d" % next(numbers)
                known = pika.BasicProperties(delivery_mode=2, message_id=body.decode())
                channel.basic_publish(self._exchange, "amqp", body, known, mandatory=True)
                self.confirmed.append(body)

    def _failed(self, reason: str) -> None:
        self.failures[reason] += 1
        self._over.wait(AGAIN_S)


class Arrivals:
    """What has come to each callback."""

    def __init__(self, callbacks: Sequence[Callback]) -> None:
        self._callbacks = callbacks
        self._seen = [0] * len(callbacks)
        self._ids: list[dict[bytes, set[str]]] = [{} for _ in callbacks]
        self._last_s = time.monotonic()
        self.count = 0
        self.longest_pause_s = 0.0
        """Without any delivery, since it was set to 0."""

    def read(self) -> None:
        """Takes in what has come since."""
        before = self.count
        for at, callback in enumerate(self._callbacks):
            new = callback.requests[self._seen[at] :]  # more may come while they are looked at
            for one in new:
                if "webhook-id" in one.headers:
                    self._ids[at].setdefault(one.body, set()).add(one.headers["webhook-id"])
                    self.count += 1
            self._seen[at] += len(new)
        now_s = time.monotonic()
        self.longest_pause_s = max(self.longest_pause_s, now_s - self._last_s)
        if self.count > before:
            self._last_s = now_s

    def missing(self, confirmed: Sequence[bytes]) -> set[bytes]:
        """What has not come to each callback."""
        self.read()
        return {body for body in confirmed if not all(body in ids for ids in self._ids)}

    def with_other_ids(self) -> list[bytes]:
        """What came to a callback with more than one id."""
        self.read()
        return [body for ids in self._ids for body, found in ids.items() if len(found) > 1]

    def repeats(self) -> int:
        return self.count - sum(map(len, self._ids))
