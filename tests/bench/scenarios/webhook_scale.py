"""Webhooks by the thousand: many subscriptions of one exchange, slow targets, and latency."""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Iterable

from ..brokers import Broker
from ..client import Client
from ..figures import Figures, Goal
from ..frames import PERSISTENT, Message
from ..measure import percentile
from ..scenario import Scenario, Settings
from ..sink import COUNT, HANG, STAMP
from ..spent import Spent
from ..worker import Crew
from .webhook import EXCHANGE, Target

PACED_PER_S = 1_000
SUBSCRIPTIONS = 10_000
SLOW = 1_000
FAST = 20
LIMIT_S = 60.0
DRAIN_S = 10.0
WARM_UP_S = 0.5
BEGINNING_EVERY = 4
"""Fast messages for each slow one while the slow targets get their first."""
LATER_EVERY = 15
"""And later: 66 a second, as many as time out of 1,000 in 15 s."""
DATABASE = "hub.sqlite3"


def _multiply(broker: Broker, paths: list[str], keys: list[str]) -> None:
    """Copies the row of the one subscription there is: to verify each over HTTP takes minutes."""
    database = sqlite3.connect(broker.data / DATABASE, isolation_level=None)
    columns = [row[1] for row in database.execute("PRAGMA table_info(subscriptions)")]
    [model] = database.execute("SELECT * FROM subscriptions LIMIT 1").fetchall()
    base = dict(zip(columns, model, strict=True))
    origin = base["callback"].rpartition("/hook/")[0]
    database.execute("BEGIN")
    for number, (path, key) in enumerate(zip(paths, keys, strict=True)):
        callback = f"{origin}/{path}"
        parts = (base["source_vhost"], "x", EXCHANGE, key, callback)
        identity = hashlib.sha256("\0".join(parts).encode()).hexdigest()
        own = {"id": f"{number:032x}", "identity": identity, "callback": callback, "topic": key}
        places = ", ".join("?" * len(columns))
        row = [{**base, **own}[column] for column in columns]
        database.execute(f"INSERT INTO subscriptions VALUES ({places})", row)
    database.execute("COMMIT")
    database.close()


def _publish(client: Client, key: str, number: int) -> None:
    message = Message(EXCHANGE, key, bytes(STAMP.size), PERSISTENT).published()
    stamp = STAMP.pack(time.monotonic_ns(), number)
    client.socket.sendall(message[: -STAMP.size - 1] + stamp + message[-1:])


def _paced(
    broker: Broker,
    target: Target,
    keys: list[str],
    seconds: float,
    aside: Iterable[str] = (),
    every: int = 1,
) -> list[float]:
    """The times of what was published at `PACED_PER_S`, in turn to each key; behind `every` so
    many of them, something goes to a key `aside` that is not waited for."""
    before, count = target.counters[COUNT], int(PACED_PER_S * seconds)
    client, others = Client(broker.address), iter(aside)
    start = time.monotonic()
    for number in range(count):
        time.sleep(max(0.0, start + number / PACED_PER_S - time.monotonic()))
        _publish(client, keys[number % len(keys)], number)
        other = next(others, None) if number % every == 0 else None
        if other is not None:
            _publish(client, other, number)
    target.wait(before + count, DRAIN_S)
    client.close()
    return target.times_s()[before:]


def latency(broker: Broker, settings: Settings) -> Figures:
    """From publish to callback at 1,000/s, to twenty subscriptions in turn."""
    count = int(PACED_PER_S * (settings.seconds + WARM_UP_S))
    with Crew() as crew:
        target = Target(broker, crew, FAST, timed=count)
        keys = [f"fast.{number}" for number in range(FAST)]
        for number, key in enumerate(keys):
            target.subscribe(f"hook/{number}", key)
        _paced(broker, target, keys, WARM_UP_S)
        spent = Spent(broker)
        times_s = _paced(broker, target, keys, settings.seconds)
        line = Figures(None, len(times_s) / settings.seconds, spent.cpu_us(len(times_s)))
        line.p50_ms, line.p99_ms = (percentile(times_s, one) * 1e3 for one in (50, 99))
        return line


def fan_out(broker: Broker, settings: Settings) -> Figures:
    """One message to 10,000 subscriptions of one exchange, after a start with all of them."""
    with Crew() as crew:
        target = Target(broker, crew, SUBSCRIPTIONS + 1, timed=2 * SUBSCRIPTIONS)
        target.subscribe(f"hook/{SUBSCRIPTIONS}", "one")
        broker.restart(False)
        alone = broker.meter.read().rss_bytes
        paths = [f"hook/{number}" for number in range(SUBSCRIPTIONS)]
        _multiply(broker, paths, ["all"] * SUBSCRIPTIONS)
        start_s = broker.restart(False)
        idle = (broker.meter.read().rss_bytes - alone) / SUBSCRIPTIONS
        spent, client, start = Spent(broker), Client(broker.address), time.monotonic()
        _publish(client, "all", 0)
        target.wait(SUBSCRIPTIONS, LIMIT_S)
        seconds = time.monotonic() - start
        client.close()
        line = Figures(None, SUBSCRIPTIONS / seconds, spent.cpu_us(SUBSCRIPTIONS), spent.peak_mb())
        line.seconds, line.job = seconds, SUBSCRIPTIONS
        line.remark(f"start {start_s:.1f} s, {idle / 1e3:.1f} kB an idle subscription")
        line.goals.append(Goal("<= 5 s", seconds <= 5))
        line.goals.append(Goal("<= 10 kB idle", idle <= 10_000))
        return line


def slow_targets(broker: Broker, settings: Settings) -> Figures:
    """The latency of others while 1,000 targets begin to hang, and while all of them do.

    Each gets messages of its own: what a fan-out to a thousand queues costs is no fault of theirs.
    """
    seconds = max(settings.seconds, SLOW * BEGINNING_EVERY / PACED_PER_S)
    count = int(PACED_PER_S * (3 * seconds + WARM_UP_S)) + SLOW
    with Crew() as crew:
        target = Target(broker, crew, FAST, timed=count)
        keys = [f"fast.{number}" for number in range(FAST)]
        for number, key in enumerate(keys):
            target.subscribe(f"hook/{number}", key)
        slow = [f"slow.{number}" for number in range(SLOW)]
        _multiply(broker, [f"{HANG}/{number}" for number in range(SLOW)], slow)
        broker.restart(False)
        _paced(broker, target, keys, WARM_UP_S)
        before_s = _paced(broker, target, keys, seconds)
        beginning_s = _paced(broker, target, keys, seconds, slow, BEGINNING_EVERY)
        hanging_s = _paced(broker, target, keys, seconds, slow, LATER_EVERY)
        times_s = beginning_s + hanging_s
        line = Figures(None, len(times_s) / (2 * seconds))
        line.p50_ms, line.p99_ms = (percentile(times_s, one) * 1e3 for one in (50, 99))
        before, beginning, hanging = (
            percentile(one, 99) * 1e3 for one in (before_s, beginning_s, hanging_s)
        )
        line.remark(
            f"p99 without them {before:.1f} ms, while they are met for the first time, "
            f"{PACED_PER_S // BEGINNING_EVERY} a second, {beginning:.1f} ms, while all hang "
            f"{hanging:.1f} ms"
        )
        line.goals.append(Goal("<= 2x while all hang", hanging <= 2 * before))
        return line


SCENARIOS = (
    Scenario("webhook-latency-1k", latency, 50, floor_is_p99_ms=True, fresh=True, http=True),
    Scenario("webhooks-10k-subs", fan_out, fresh=True, http=True),
    Scenario("webhooks-1k-slow", slow_targets, fresh=True, http=True),
)
