"""`python -m tests.bench.counting`: what statistics cost of the processor time of a server.

Their calls are counted while a server is under load, and timed apart from it: servers with and
without statistics differ hardly more than two servers that are alike.
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from timeit import repeat
from types import SimpleNamespace
from typing import Any, Final

from tests.support.server import WarrenServer
from warrenmq.app.bench.connection import read_address
from warrenmq.app.bench.load import Load
from warrenmq.app.bench.throughput import measure
from warrenmq.app.cli import main as warren
from warrenmq.core.statistics.counters import TrafficCounters
from warrenmq.core.statistics.statistics import Statistics

from .measure import Meter

LOADS: Final[dict[str, dict[str, Any]]] = {
    "transient, without acks": {"prefetch": 0},
    "persistent, 1,000 unconfirmed": {"persistent": True, "confirms": 1_000},
    "persistent, 10 unconfirmed": {"persistent": True, "confirms": 10},
    "persistent, 1 unconfirmed": {"persistent": True, "confirms": 1},
    "transient, 1,000 routing keys": {"keys": 1_000},
}
CALLS: Final = 20_000
REPORT: Final = "STATISTICS_CALLS"
"""The variable with the file for the numbers of calls."""


def serve_counted() -> None:
    """Runs the command line, and writes how often each method was called; in the server."""
    calls: Counter[str] = Counter()
    for name in costs_us():
        setattr(Statistics, name, _counted(getattr(Statistics, name), name, calls))
    atexit.register(lambda: Path(os.environ[REPORT]).write_text(json.dumps(calls)))
    warren()


def _counted(method: Callable[..., Any], name: str, calls: Counter[str]) -> Callable[..., Any]:
    @wraps(method)
    def called(*given: Any, **named: Any) -> Any:
        calls[name] += 1
        return method(*given, **named)

    return called


def costs_us() -> dict[str, float]:
    """Returns microseconds of a call of each method that is called for reads, batches and
    writes."""
    statistics = Statistics(_context())
    channel, exchange = SimpleNamespace(counters=None), SimpleNamespace(counters=None)
    queue: Any = SimpleNamespace(
        counters=None, deleted=False, vhost="/", ready_count=0, unacked_count=0
    )
    traffic = TrafficCounters()
    calls: dict[str, tuple[Any, ...]] = {
        "published": ("/", channel, exchange, 900, 900, 0, True),
        "enqueued": (queue, 900),
        "delivered": (queue, channel, 900, False, False),
        "acknowledged": (queue, channel, 900),
        "confirmed": ("/", channel, 900),
        "received": (traffic, 65_536),
        "sent": (traffic, 65_536),
    }
    return {name: _least_us(getattr(statistics, name), given) for name, given in calls.items()}


def _least_us(method: Callable[..., Any], given: tuple[Any, ...]) -> float:
    return min(repeat(lambda: method(*given), number=CALLS, repeat=7)) / CALLS * 1e6


def _context() -> Any:
    nothing = SimpleNamespace(at=lambda *_: None, start=lambda *_: None)
    return SimpleNamespace(now_ms=0, clock=None, timers=nothing, slices=nothing)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.counting", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each load (3)")
    seconds, costs = parser.parse_args().seconds, costs_us()
    print(", ".join(f"{name} {cost:.2f} us" for name, cost in costs.items()))
    for title, options in LOADS.items():
        cpu_us, calls, messages = _measured(seconds, options)
        spent_us = sum(costs[name] * count for name, count in calls.items())
        print(
            f"{title}: {messages:,} messages, {cpu_us / messages:.3f} us each, statistics "
            f"{spent_us / messages:.4f} us, {spent_us / cpu_us:.2%}"
        )


def _measured(seconds: float, options: dict[str, Any]) -> tuple[float, dict[str, int], int]:
    """Returns the server's processor time under load, the calls, and how many messages it took."""
    program = "from tests.bench.counting import serve_counted; serve_counted()"
    with tempfile.TemporaryDirectory() as place:
        report = Path(place, "calls.json")
        command = [sys.executable, "-c", program]
        with WarrenServer(command=command, env={REPORT: str(report)}) as server:
            meter = Meter(server.pid)
            before_s = meter.read().cpu_s
            usual = {"persistent": False, "confirms": 0, "prefetch": 1_000}
            address = read_address(server.amqp_url)
            load = Load(address, (), 1, 1, 16, seconds, **{**usual, **options})
            messages = measure(load, 1).published
            cpu_s = meter.read().cpu_s - before_s
        return cpu_s * 1e6, json.loads(report.read_text()), messages


if __name__ == "__main__":
    main()
