"""A real client on both ends: pika's blocking connection, one process each."""

from __future__ import annotations

import time

import pika

from ..brokers import Broker
from ..client import Address
from ..figures import Figures
from ..flow import Flow, Standing
from ..scenario import Scenario, Settings
from ..spent import Spent
from ..worker import Control, Crew
from .throughput import PREFETCH, QUEUES, SMALL

DRAIN_LIMIT_S = 60.0
BATCH = 50


def connect(address: Address) -> pika.BlockingConnection:
    credentials = pika.PlainCredentials(address.user, address.password)
    return pika.BlockingConnection(
        pika.ConnectionParameters(address.host, address.port, address.vhost, credentials)
    )


def _publish(control: Control, address: Address, seconds: float) -> tuple[int, float]:
    connection = connect(address)
    channel = connection.channel()
    control.ready()
    start, count = time.monotonic(), 0
    while time.monotonic() - start < seconds:
        for _ in range(BATCH):
            channel.basic_publish("", QUEUES[0], SMALL)
        count += BATCH
    connection.close()
    return count, time.monotonic() - start


def _consume(control: Control, address: Address, limit_s: float) -> tuple[int, float]:
    connection = connect(address)
    channel = connection.channel()
    channel.basic_qos(prefetch_count=PREFETCH)
    control.ready()
    deadline, expected, count = time.monotonic() + limit_s, None, 0
    first = last = 0.0
    for delivered, _, _ in channel.consume(QUEUES[0], inactivity_timeout=0.1):
        if delivered is not None:
            channel.basic_ack(delivered.delivery_tag)
            count += 1
            last = time.monotonic()
            first = first or last
        if expected is None and control.pipe.poll():
            expected = control.pipe.recv()
        if count == expected or time.monotonic() > deadline:
            break
    channel.cancel()
    connection.close()
    return count, last - first


def real_pika(broker: Broker, settings: Settings) -> Figures:
    """Single acks, prefetch 2,000; pika itself is the slower side by far."""
    with Standing(broker, Flow(QUEUES[:1])), Crew() as crew:
        limit_s = settings.seconds + DRAIN_LIMIT_S
        consumer = crew.hire(_consume, broker.address, limit_s)
        producer = crew.hire(_publish, broker.address, settings.seconds)
        spent = Spent(broker)
        crew.go()
        sent, sent_s = producer.result(limit_s)
        consumer.pipe.send(sent)
        came, came_s = consumer.result(limit_s)
        if came != sent:
            raise RuntimeError(f"{came} came out, not {sent}")
        return Figures(sent / sent_s, came / came_s, spent.cpu_us(came), spent.peak_mb())


SCENARIOS = (Scenario("real-pika", real_pika),)
