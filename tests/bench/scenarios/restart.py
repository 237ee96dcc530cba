"""How long it takes until everything durable is served again."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ..brokers import Broker
from ..client import BenchError, Client, names
from ..disk import directory_bytes
from ..figures import Figures, Goal
from ..flow import Flow, fill
from ..frames import PERSISTENT, Message, Stream
from ..producer import Load
from ..scenario import Scenario, Settings
from ..spent import Spent
from .scale import declare_many
from .throughput import SMALL

QUEUE_COUNT = 10_000
WINDOW = 100_000
PUBLISH_S = 12.0
AT_MOST_S = ((1_000_000, 3.0), (10_000_000, 20.0))


def _publishes(queues: Sequence[str]) -> Stream:
    return Stream.join([Message("", name, SMALL, PERSISTENT).published() for name in queues])


def _waiting(broker: Broker, queues: Sequence[str]) -> int:
    client = Client(broker.address)
    total = sum(client.declare_queue(name, passive=True) for name in queues)
    client.close()
    return total


def _restart(broker: Broker, queues: Sequence[str], wanted: int, *, crash: bool) -> float:
    """The seconds; raises `BenchError` when another number of messages came back."""
    seconds = broker.restart(crash)
    if (found := _waiting(broker, queues)) != wanted:
        how = "a kill" if crash else "a stop"
        raise BenchError(f"{found:,} of {wanted:,} confirmed messages came back after {how}")
    return seconds


def restart(broker: Broker, settings: Settings) -> Figures:
    """Confirmed persistent messages, spread over 10,000 queues; then a stop and a kill.

    In: publishes to so many queues. The seconds are those after a stop.
    """
    client = Client(broker.address)
    wanted = names("bench-kept-", QUEUE_COUNT)
    wanted = wanted[: declare_many(client, wanted, settings.bound_s(), durable=True)]
    client.close()
    load = Load(settings.bound_s(PUBLISH_S), limit=settings.messages, window=WINDOW)
    spent = Spent(broker)
    filled = fill(broker, Flow((), ((partial(_publishes, wanted), load),)))
    count = filled.published
    line = Figures(filled.in_rate, None, spent.cpu_us(count), spent.peak_mb())
    line.disk_mb = directory_bytes(broker.data) / 1e6
    line.seconds, line.job = _restart(broker, wanted, count, crash=False), count + len(wanted)
    killed_s = _restart(broker, wanted, count, crash=True)
    line.note = f"{count:,} messages in {len(wanted):,} queues; after a kill {killed_s:.2f} s, "
    line.note += f"the first start with nothing {broker.start_s:.2f} s"
    for messages, most_s in AT_MOST_S:
        if count <= messages:
            met = max(line.seconds, killed_s) <= most_s
            line.goals.append(Goal(f"restart <= {most_s:.0f} s", met))
            break
    return line


SCENARIOS = (Scenario("restart-1m-10k", restart, fresh=True),)
