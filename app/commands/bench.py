"""`warren bench`: measures a broker, Warren or another."""

from __future__ import annotations

from dataclasses import asdict

import click

from ..bench.connection import MAX_BODY_BYTES, BrokerError, NoBroker, read_address
from ..bench.load import Load
from ..bench.throughput import measure
from .exit_codes import CommandError, Unreachable
from .options import JSON, examples
from .printer import Printer

URL = "amqp://guest:guest@localhost:5672/"
MAX_KEYS = 100_000
"""Each has a message that is made before."""
_COUNT = click.IntRange(0, 100)


@click.group(
    help="Measure any AMQP 0-9-1 broker.",
    epilog=examples("warren bench throughput --size 100 --persistent --confirms 1000"),
)
def bench() -> None:
    pass


@bench.command(
    help="""Measure how many messages a second a broker passes on.

    The broker is at URL. Producers and consumers are processes of this machine, so they take their
    share of it. The queues are new ones, and deleted at the end. Brokers are faster with messages
    that are alike: --keys makes them differ.""",
    epilog=examples(
        "warren bench throughput",
        "warren bench throughput amqp://guest:guest@rabbit:5672/ --persistent --confirms 1000",
        "warren bench throughput --keys 1000",
        "warren bench throughput --producers 2 --consumers 2 --queues 2 --size 1000 --json",
    ),
)
@click.argument("url", default=URL)
@click.option("--producers", type=click.IntRange(1, 100), default=1, show_default=True)
@click.option("--consumers", type=_COUNT, default=1, show_default=True)
@click.option("--queues", type=click.IntRange(1, 1000), default=1, show_default=True,
    help="Shared among producers and consumers in turn.")  # fmt: skip
@click.option("--size", type=click.IntRange(0, MAX_BODY_BYTES), default=16, show_default=True,
    help="Of a body, in bytes.")  # fmt: skip
@click.option("--keys", type=click.IntRange(0, MAX_KEYS), default=0, show_default=True,
    metavar="N", help="Publish to a topic exchange, with so many routing keys in turn; 0 to "
    "publish to the queues.")  # fmt: skip
@click.option("--seconds", type=click.FloatRange(0.1, 3600), default=5.0, show_default=True)
@click.option("--persistent", is_flag=True, help="Durable queues, messages on disk.")
@click.option("--confirms", type=click.IntRange(0), default=0, show_default=True, metavar="N",
    help="Publisher confirms, with at most so many outstanding; 0 for none.")  # fmt: skip
@click.option("--prefetch", type=click.IntRange(0, 65535), default=1000, show_default=True,
    metavar="N", help="Deliveries without an ack; 0 to consume without acks.")  # fmt: skip
@JSON
def throughput(
    url: str, producers: int, consumers: int, queues: int, size: int, keys: int,
    seconds: float, persistent: bool, confirms: int, prefetch: int, as_json: bool,
) -> None:  # fmt: skip
    load = Load(
        read_address(url),
        (),
        producers,
        consumers,
        size,
        seconds,
        persistent,
        confirms,
        prefetch,
        keys=keys,
    )
    try:
        found = measure(load, queues)
    except NoBroker as error:
        raise Unreachable(str(error)) from error
    except (BrokerError, OSError) as error:
        raise CommandError(str(error)) from error
    out = Printer(as_json=as_json)
    if as_json:
        out.one(asdict(found))
    out.say(f"published  {found.published_per_s:12,.0f} messages/s  {found.published:,} in all")
    if consumers:
        out.say(f"consumed   {found.consumed_per_s:12,.0f} messages/s  {found.consumed:,} in all")
    out.say(f"bodies     {found.megabytes_per_s:12,.1f} MB/s")
