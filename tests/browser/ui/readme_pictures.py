"""Takes the pictures of the web UI in README: `python -m tests.browser.ui.readme_pictures`.

A server gets ten minutes of traffic from six AMQP clients and delivers to four webhooks, one of
which fails.
"""

from __future__ import annotations

import math
import random
import sys
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pika

from tests.browser.browsers import Browser
from tests.support.server import WarrenServer

from .signed_in import SignedInPage

IMAGES = Path(__file__).parents[3] / "docs" / "images"
TRAFFIC_S = 610
SIZE = (1360, 900)
EXCHANGE, TENANT = "orders", {"tenant": "acme"}
KEYS = ("order.placed", "order.paid", "order.shipped", "order.returned")
CONSUMERS = {"billing": 0.004, "search": 0.002, "mailer": 0.01, "audit": 0.03}
"""Seconds for a message in the queue of this name."""
UNCONSUMED = "reports.nightly"
HOOKS = ("crm", "mail", "stock", "partner")
FAILING, FAILURES = "crm", 0.75


class Receiver(BaseHTTPRequestHandler):
    """Agrees to every subscription and accepts every message, but most of those for `FAILING`."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer(200, parse_qs(urlsplit(self.path).query)["hub.challenge"][0])

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        is_failing = urlsplit(self.path).path == f"/{FAILING}" and random.random() < FAILURES
        self._answer(503, "try later") if is_failing else self._answer(200, "thanks")

    def _answer(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Keeps the terminal quiet."""


def declare(server: WarrenServer, receiver_port: int) -> None:
    queues = [*CONSUMERS, UNCONSUMED]
    with httpx.Client(base_url=f"{server.http_url}/api", auth=("guest", "guest")) as client:
        client.put(f"/exchanges/%2F/{EXCHANGE}", json={"type": "topic"}).raise_for_status()
        for queue in queues:
            client.put(f"/queues/%2F/{queue}", json={}).raise_for_status()
            binding = {"routing_key": "order.*" if queue in CONSUMERS else "order.returned"}
            client.post(f"/bindings/%2F/e/{EXCHANGE}/q/{queue}", json=binding).raise_for_status()
        for hook, topic in zip(HOOKS, KEYS, strict=True):
            body = {"vhost": "/", "resource_type": "exchange", "resource_name": EXCHANGE,
                    "topic": topic, "callback": f"http://127.0.0.1:{receiver_port}/{hook}",
                    "secret": "whsec_" + "b" * 40}  # fmt: skip
            client.post("/hub/subscriptions", json=body).raise_for_status()


def _channel(server: WarrenServer, name: str) -> Any:
    parameters = pika.ConnectionParameters(
        server.host, server.amqp_port, client_properties={"connection_name": name}
    )
    return pika.BlockingConnection(parameters).channel()


def publish(server: WarrenServer, name: str, ended: Event) -> None:
    """Publishes from 20 to 60 messages a second, in slow waves."""
    channel, chance = _channel(server, name), random.Random(name)
    properties = pika.BasicProperties("application/json", delivery_mode=2, headers=TENANT)
    started, number = time.monotonic(), 0
    while not ended.is_set():
        number += 1
        body = f'{{"order": {number}, "total": {chance.randint(5, 900)}, "currency": "EUR"}}'
        channel.basic_publish(EXCHANGE, chance.choice(KEYS), body.encode(), properties)
        wave = 40 + 15 * math.sin((time.monotonic() - started) / 50) + chance.uniform(-5, 5)
        channel.connection.sleep(1 / wave)
    channel.connection.close()


def consume(server: WarrenServer, queue: str, ended: Event) -> None:
    channel = _channel(server, queue)
    channel.basic_qos(prefetch_count=20)
    for method, _, _ in channel.consume(queue, inactivity_timeout=0.5):
        if ended.is_set():
            break
        if method is not None:
            channel.connection.sleep(CONSUMERS[queue])
            channel.basic_ack(method.delivery_tag)
    channel.connection.close()


def take(server: WarrenServer) -> None:
    with Browser("chromium") as browser:
        ui = SignedInPage(browser.new_page(), server)
        ui.page.resize(*SIZE)
        ui.open()
        ui.page.wait("document.querySelectorAll('main .plot path').length > 6")
        ui.page.screenshot(IMAGES / "overview.png")
        query = {"callback": FAILING, "outcome": "retried", "limit": "100"}
        found = httpx.get(f"{server.http_url}/api/hub/attempts", params=query,
                          auth=("guest", "guest")).json()["attempts"]  # fmt: skip
        repeated = max(found, key=lambda one: int(one["number"]))
        ui.go(f"/deliveries/{repeated['id']}")
        ui.shows("503 Service Unavailable", "main .grid")
        ui.page.screenshot(IMAGES / "delivery.png")


def main(traffic_s: float) -> None:
    receiver, ended = ThreadingHTTPServer(("127.0.0.1", 0), Receiver), Event()
    Thread(target=receiver.serve_forever, daemon=True).start()
    with WarrenServer() as server:
        declare(server, receiver.server_port)
        work: list[tuple[Callable[..., None], str]] = [(publish, "shop"), (publish, "returns")]
        work += [(consume, queue) for queue in CONSUMERS]
        clients = [Thread(target=act, args=(server, name, ended)) for act, name in work]
        for client in clients:
            client.start()
        time.sleep(traffic_s)
        try:
            take(server)
        finally:
            ended.set()
            for client in clients:
                client.join()
    receiver.shutdown()


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else TRAFFIC_S)
