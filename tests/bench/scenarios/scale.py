"""Many of something: connections, bindings, queues."""

from __future__ import annotations

import resource
import selectors
import time
from collections.abc import Sequence
from functools import partial

from .. import frames
from ..brokers import Broker
from ..client import BenchError, Client, bind_arguments, declare_arguments, names, open_many
from ..figures import Figures, Goal
from ..flow import Exchange, Flow, Standing
from ..pipeline import pipeline
from ..scenario import Scenario, Settings
from ..spent import Spent
from .throughput import QUEUES

CONNECTIONS, BATCH = 8_000, 200
BINDINGS, QUEUE_COUNT = 20_000, 100_000
GROWTH_MB_AT_MOST = 100
LIMIT_S = 5.0
IDLE_S = 1.0
SPARE_FILES = 100
EXCHANGE = "bench-x"


def raise_open_files(count: int) -> None:
    """Lets this process and its children have that many connections, or raises `BenchError`."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count + SPARE_FILES:
        raise BenchError(f"{count} connections need that many open files, allowed: {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def connections(broker: Broker, _: Settings) -> Figures:
    """In: connections opened per second, each with one channel; then all stay idle."""
    raise_open_files(CONNECTIONS)
    spent, start = Spent(broker), time.monotonic()
    clients: list[Client] = []
    try:
        while len(clients) < CONNECTIONS and time.monotonic() - start < 4 * LIMIT_S:
            clients += open_many(broker.address, BATCH)
        rate = len(clients) / (time.monotonic() - start)
        _stay_idle(clients)
        growth = spent.growth_bytes()
        for client in clients[:: max(1, len(clients) // 20)]:
            client.close_channel()
    finally:
        for client in clients:
            client.socket.close()
    note = (
        f"{len(clients):,} idle: +{growth / 1e6:.0f} MB, {growth / len(clients) / 1e3:.1f} kB each"
    )
    return Figures(rate, None, spent.cpu_us(len(clients)), spent.peak_mb(), note=note)


def _stay_idle(clients: list[Client]) -> None:
    """Waits a moment; raises `BenchError` when the broker says or closes anything."""
    with selectors.DefaultSelector() as selector:
        for client in clients:
            selector.register(client.socket, selectors.EVENT_READ)
        if ready := selector.select(IDLE_S):
            raise BenchError(f"{len(ready)} idle connections were disturbed")


def bindings(broker: Broker, _: Settings, *, durable: bool) -> Figures:
    """In: bindings per second of different keys, pipelined, every answer counted."""
    exchange = Exchange(EXCHANGE, "direct", ())
    with Standing(broker, Flow(QUEUES[:1], exchanges=(exchange,), durable=durable)):
        client = Client(broker.address)
        keys = names("key.", BINDINGS)
        requests = [
            frames.method(1, 50, 20, bind_arguments(QUEUES[0], EXCHANGE, key)) for key in keys
        ]
        spent, start = Spent(broker), time.monotonic()
        answered = pipeline(client, requests, len(frames.method(1, 50, 21)), LIMIT_S)
        rate = answered / (time.monotonic() - start)
        line = Figures(rate, None, spent.cpu_us(answered), spent.peak_mb())
        line.note = f"{answered:,} bindings"
        client.close()
        return line


def declare_many(client: Client, wanted: Sequence[str], limit_s: float, *, durable: bool) -> int:
    """Declares queues, pipelined; gives how many stand when the time is up."""
    requests = [
        frames.method(1, 50, 10, declare_arguments(name, durable=durable)) for name in wanted
    ]
    answer = len(frames.method(1, 50, 11, frames.short(wanted[0]) + bytes(8)))
    return pipeline(client, requests, answer, limit_s)


def queues(broker: Broker, _: Settings, *, durable: bool) -> Figures:
    """In: queues declared per second, pipelined; the note tells what each costs in memory."""
    client = Client(broker.address)
    wanted = names("bench-many-", QUEUE_COUNT)
    spent, start = Spent(broker), time.monotonic()
    answered = declare_many(client, wanted, LIMIT_S, durable=durable)
    rate = answered / (time.monotonic() - start)
    growth = spent.growth_bytes()
    line = Figures(rate, None, spent.cpu_us(answered), spent.peak_mb())
    line.note = f"{answered:,} queues: +{growth / 1e6:.0f} MB, {growth / answered:.0f} B each"
    goal = Goal(f"+{GROWTH_MB_AT_MOST} MB at most", growth <= GROWTH_MB_AT_MOST * 1e6)
    line.goals.append(goal)
    client.close()
    return line


SCENARIOS = (
    Scenario("bindings-20k", partial(bindings, durable=False), 20_000),
    Scenario("bindings-20k-durable", partial(bindings, durable=True), 5_000),
    Scenario("queues-100k", partial(queues, durable=False), fresh=True),
    Scenario("queues-100k-durable", partial(queues, durable=True), fresh=True),
    Scenario("connections-8k", connections, fresh=True),
)
