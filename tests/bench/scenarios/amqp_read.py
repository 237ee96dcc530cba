"""The stream that Spark reads, read by AMQP consumers: what other connectors do."""

from __future__ import annotations

import time
from dataclasses import replace

from pamqp import encode

from ..brokers import Broker
from ..client import Address
from ..consumer import Subscription
from ..figures import Figures
from ..flow import Flow, drain
from ..scenario import Scenario, Settings
from ..spark import NAME, filled, message, varied
from ..spent import Spent
from ..worker import Control, Crew
from .pika_clients import connect
from .spark_read import SMALL_BYTES
from .throughput import ACK_EVERY, PREFETCH

FROM_FIRST = encode.field_table({"x-stream-offset": "first"})[4:]
OFFSET_BYTES = len(encode.short_string("x-stream-offset")) + len(b"l") + 8
"""What a stream adds to a message's headers."""
LIMIT_S = 60.0


def counted(broker: Broker, settings: Settings) -> Figures:
    """Out: rows that came. They are counted by their bytes, and nothing is decoded."""
    plain = message(0, SMALL_BYTES)
    shown = replace(plain, properties=plain.properties + bytes(OFFSET_BYTES))
    consumer = Subscription(NAME, shown, PREFETCH, ACK_EVERY, same_body=False, arguments=FROM_FIRST)
    with filled(broker, varied(SMALL_BYTES), settings.messages):
        spent = Spent(broker)
        rate = drain(broker, Flow((NAME,), consumers=(consumer,)), settings.messages).out_rate
        line = Figures(None, rate, spent.cpu_us(settings.messages), spent.peak_mb())
    line.note = "counted, not decoded"
    return line


def _consume(control: Control, address: Address, count: int, seconds: float) -> tuple[int, float]:
    connection = connect(address)
    channel = connection.channel()
    channel.basic_qos(prefetch_count=PREFETCH)
    control.ready()
    found, start = 0, time.monotonic()
    for delivered, _, _ in channel.consume(NAME, arguments={"x-stream-offset": "first"}):
        found += 1
        if found % ACK_EVERY == 0:
            channel.basic_ack(delivered.delivery_tag, multiple=True)
            if found == count or time.monotonic() - start > seconds:
                break
    seconds = time.monotonic() - start
    connection.close()
    return found, seconds


def decoded(broker: Broker, settings: Settings) -> Figures:
    """Out: rows that pika has decoded, acked 500 at a time."""
    with filled(broker, varied(SMALL_BYTES), settings.messages), Crew() as crew:
        arguments = broker.address, settings.messages, settings.seconds
        consumer = crew.hire(_consume, *arguments)
        spent = Spent(broker)
        crew.go()
        count, seconds = consumer.result(LIMIT_S)
        return Figures(None, count / seconds, spent.cpu_us(count), spent.peak_mb())


SCENARIOS = (Scenario("amqp-read", counted), Scenario("amqp-read-pika", decoded))
