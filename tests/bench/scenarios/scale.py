"""Many of something: connections, bindings, queues."""

from __future__ import annotations

import resource
import selectors
import time

from .. import frames
from ..brokers import Broker
from ..client import BenchError, Client, bind_arguments, declare_arguments, names, open_many
from ..flow import Exchange, Figures, Flow, Spent, Standing
from ..scenario import Scenario, Settings
from .throughput import QUEUES

CONNECTIONS, BATCH = 8_000, 200
BINDINGS, QUEUE_COUNT = 20_000, 100_000
IN_FLIGHT = 1_000
LIMIT_S = 5.0
IDLE_S = 1.0
SPARE_FILES = 100
EXCHANGE = "bench-x"
READ_BYTES = 1 << 18


def _raise_open_files() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < CONNECTIONS + SPARE_FILES:
        raise BenchError(f"{CONNECTIONS} connections need that many open files, allowed: {hard}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def connections(broker: Broker, _: Settings) -> Figures:
    """In: connections opened per second, each with one channel; then all stay idle."""
    _raise_open_files()
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


def _pipeline(client: Client, requests: list[bytes], answer: int, limit_s: float) -> int:
    """Sends requests with at most 1,000 unanswered; gives how many were answered in time."""
    deadline = time.monotonic() + limit_s
    sent = received = 0
    while received < len(requests) * answer and time.monotonic() < deadline:
        free = IN_FLIGHT - (sent - received // answer)
        if free > IN_FLIGHT // 2 and sent < len(requests):
            client.socket.sendall(b"".join(requests[sent : sent + free]))
            sent = min(sent + free, len(requests))
        data = client.socket.recv(READ_BYTES)
        if not data:
            raise BenchError(f"the broker closed the connection after {received // answer}")
        received += len(data)
        _check_end(data)
    # What was sent and is not answered yet would come in the middle of the next answer.
    while received < sent * answer:
        received += len(data := client.socket.recv(READ_BYTES))
        if not data:
            raise BenchError(f"the broker closed the connection after {received // answer}")
    return received // answer


def _check_end(data: bytes) -> None:
    if b"\x00\x14\x00\x28" in data or b"\x00\x0a\x00\x32" in data:
        raise BenchError(f"closed: {data[-200:]!r}")


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
        answered = _pipeline(client, requests, len(frames.method(1, 50, 21)), LIMIT_S)
        rate = answered / (time.monotonic() - start)
        line = Figures(rate, None, spent.cpu_us(answered), spent.peak_mb())
        line.note = f"{answered:,} bindings"
        client.close()
        return line


def queues(broker: Broker, _: Settings) -> Figures:
    """In: queues declared per second, pipelined; the note tells what each costs in memory."""
    client = Client(broker.address)
    wanted = names("bench-many-", QUEUE_COUNT)
    requests = [frames.method(1, 50, 10, declare_arguments(name)) for name in wanted]
    answer = len(frames.method(1, 50, 11, frames.short(wanted[0]) + bytes(8)))
    spent, start = Spent(broker), time.monotonic()
    answered = _pipeline(client, requests, answer, LIMIT_S)
    rate = answered / (time.monotonic() - start)
    growth = spent.growth_bytes()
    line = Figures(rate, None, spent.cpu_us(answered), spent.peak_mb())
    line.note = f"{answered:,} queues: +{growth / 1e6:.0f} MB, {growth / answered:.0f} B each"
    if not broker.ours:
        deletes = [
            frames.method(1, 50, 40, b"\x00\x00" + frames.short(name) + b"\x00")
            for name in wanted[:answered]
        ]
        _pipeline(client, deletes, len(frames.method(1, 50, 41, bytes(4))), 12 * LIMIT_S)
    client.close()
    return line


def transient_bindings(broker: Broker, settings: Settings) -> Figures:
    return bindings(broker, settings, durable=False)


def durable_bindings(broker: Broker, settings: Settings) -> Figures:
    return bindings(broker, settings, durable=True)


SCENARIOS = (
    Scenario("bindings-20k", transient_bindings, 20_000),
    Scenario("bindings-20k-durable", durable_bindings, 5_000),
    Scenario("queues-100k", queues, fresh=True),
    Scenario("connections-8k", connections, fresh=True),
)
