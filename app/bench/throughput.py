"""Measures how many messages a second a broker passes on."""

from __future__ import annotations

import multiprocessing
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import BrokenBarrierError
from typing import Any, Final

from pamqp import commands

from .connection import BrokerError, Connection
from .load import Load, consume, produce

READY_TIMEOUT_S: Final = 60.0
IDLE_TIMEOUT_S: Final = 10.0
"""Consumers that get nothing for so long get no more."""
_POLL_S: Final = 0.01


@dataclass(frozen=True, slots=True)
class Throughput:
    """The result of a measurement, in messages and messages a second."""

    published: int
    consumed: int
    published_per_s: float
    consumed_per_s: float
    megabytes_per_s: float


def measure(load: Load, queues: int) -> Throughput:
    """Measures with as many new queues, which are deleted at the end. Raises `BrokerError`."""
    names = tuple(f"bench-{secrets.token_hex(6)}" for _ in range(queues))
    load = replace(load, queues=names, exchange=names[0] if load.keys else "")
    with _queues(load):
        return _measured(load)


@contextmanager
def _queues(load: Load) -> Iterator[None]:
    connection = Connection(load.address)
    try:
        if load.keys:
            exchange = commands.Exchange.Declare(exchange=load.exchange, exchange_type="topic")
            connection.call(exchange, commands.Exchange.DeclareOk)
        for name in load.queues:
            declare = commands.Queue.Declare(queue=name, durable=load.persistent)
            connection.call(declare, commands.Queue.DeclareOk)
            if load.keys:
                bind = commands.Queue.Bind(
                    queue=name, exchange=load.exchange, routing_key=f"{name}.*"
                )
                connection.call(bind, commands.Queue.BindOk)
        yield
    finally:
        for name in load.queues:
            connection.call(commands.Queue.Delete(queue=name), commands.Queue.DeleteOk)
        if load.keys:
            delete = commands.Exchange.Delete(exchange=load.exchange)
            connection.call(delete, commands.Exchange.DeleteOk)
        connection.close()


def _measured(load: Load) -> Throughput:
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(load.producers + load.consumers + 1, timeout=READY_TIMEOUT_S)
    reports, stop = context.SimpleQueue(), context.Event()
    counts = context.Array("Q", max(1, load.consumers), lock=False)
    processes = [
        *(context.Process(target=produce, args=(load, number, start, reports.put))
          for number in range(load.producers)),
        *(context.Process(target=consume, args=(load, number, start, reports.put, counts, stop))
          for number in range(load.consumers)),
    ]  # fmt: skip
    for process in processes:
        process.start()
    try:
        return _results(load, start, reports, counts)
    finally:
        stop.set()
        for process in processes:
            process.join(IDLE_TIMEOUT_S)
            process.kill()
            process.join()


def _results(load: Load, start: Any, reports: Any, counts: Any) -> Throughput:
    try:
        start.wait()
    except BrokenBarrierError:
        reason = "not all clients could connect in time" if reports.empty() else reports.get()
        raise BrokerError(str(reason)) from None
    began_s = time.monotonic()
    found = [reports.get() for _ in range(load.producers)]
    failed = [one for one in found if isinstance(one, str)]
    if failed:
        raise BrokerError(failed[0])
    published = sum(count for count, _ in found)
    consumed, took_s = _wait_for(counts, published if load.consumers else 0, began_s)
    in_rate = sum(count / seconds for count, seconds in found)
    out_rate = consumed / took_s if consumed else 0.0
    moved = (out_rate if load.consumers else in_rate) * load.size / 1e6
    return Throughput(published, consumed, in_rate, out_rate, moved)


def _wait_for(counts: Sequence[int], published: int, began_s: float) -> tuple[int, float]:
    """Returns how many messages were consumed, and how long that took; waits for all that were
    published as long as any come."""
    consumed, at_s = 0, time.monotonic()
    while consumed < published and time.monotonic() - at_s < IDLE_TIMEOUT_S:
        now = sum(counts)
        if now != consumed:
            consumed, at_s = now, time.monotonic()
        time.sleep(_POLL_S)
    return consumed, at_s - began_s
