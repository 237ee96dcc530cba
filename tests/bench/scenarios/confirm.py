"""Publisher confirms, with consumers that ack."""

from __future__ import annotations

from functools import partial

from ..brokers import Broker
from ..consumer import Subscription
from ..flow import Figures, Flow, Running, Spent, Standing, figures
from ..frames import PERSISTENT, TRANSIENT, Message, Stream
from ..measure import percentile, sync_time_s
from ..producer import Load
from ..scenario import Scenario, Settings
from ..worker import Crew
from .throughput import ACK_EVERY, KIB, PREFETCH, QUEUES, SMALL

WINDOW = 2_000


def confirmed(
    broker: Broker,
    settings: Settings,
    *,
    body: bytes = SMALL,
    window: int = WINDOW,
    durable: bool = True,
) -> Figures:
    """p50 and p99 are the times from a quarter of the window to its last confirm."""
    message = Message("", QUEUES[0], body, PERSISTENT if durable else TRANSIENT)
    load = Load(settings.seconds, window=window)
    consumer = Subscription(QUEUES[0], message, PREFETCH, min(ACK_EVERY, window))
    flow = Flow(
        QUEUES[:1], ((partial(Stream.repeat, message), load),), (consumer,), durable=durable
    )
    with Standing(broker, flow), Crew() as crew:
        running = Running(crew, broker, flow)
        spent = Spent(broker)
        running.go()
        outcome = running.finish()
        line = figures(outcome, spent)
    times_s = outcome.sent[0].confirm_times_s
    line.p50_ms, line.p99_ms = (percentile(times_s, one) * 1e3 for one in (50, 99))
    if durable and broker.data is not None:
        line.note = f"this disk's sync {sync_time_s(broker.data.parent) * 1e3:.2f} ms"
    return line


SCENARIOS = (
    Scenario("confirm-transient-ack", partial(confirmed, durable=False)),
    Scenario("confirm-persistent-ack", confirmed, 180_000),
    Scenario("confirm-persistent-ack-1k", partial(confirmed, body=KIB), 100_000),
    Scenario("confirm-persistent-100", partial(confirmed, window=100)),
    Scenario("confirm-persistent-1", partial(confirmed, window=1)),
)
