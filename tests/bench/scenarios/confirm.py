"""Publisher confirms, with consumers that ack."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from ..brokers import Broker
from ..consumer import Subscription
from ..disk import DiskSync, FileBytes
from ..figures import Figures, Goal
from ..flow import Flow, Outcome, Running, Standing, figures
from ..frames import PERSISTENT, PRIORITIES, QUORUM, STREAM, TRANSIENT, WITH_OFFSET, Message, Stream
from ..measure import percentile
from ..producer import Load
from ..scenario import Scenario, Settings
from ..spent import Spent
from ..worker import Crew
from .throughput import ACK_EVERY, KIB, PREFETCH, QUEUES, SMALL

WINDOW = 2_000
WRITTEN_AT_MOST = 1.5
WRITTEN_FROM_WINDOW = 100
OVER_SYNC_MS = 0.3
HUNDRED_AT_LEAST = 50_000


def confirmed_flow(
    settings: Settings,
    body: bytes = SMALL,
    window: int = WINDOW,
    *,
    durable: bool = True,
    arguments: bytes = b"",
) -> Flow:
    message = Message("", QUEUES[0], body, PERSISTENT if durable else TRANSIENT)
    load = Load(settings.seconds, window=window)
    # A stream adds an offset to each delivery.
    is_stream = arguments == STREAM
    shown = replace(message, properties=WITH_OFFSET) if is_stream else message
    consumer = Subscription(
        QUEUES[0], shown, PREFETCH, min(ACK_EVERY, window), same_body=not is_stream
    )
    stream = partial(Stream.repeat, message)
    flow = Flow(QUEUES[:1], ((stream, load),), (consumer,), durable=durable)
    return replace(flow, arguments=arguments)


def _measure(broker: Broker, flow: Flow, written: FileBytes | None) -> Figures:
    with Crew() as crew:
        running = Running(crew, broker, flow)
        spent = Spent(broker)
        running.go()
        outcome = running.finish()
        line = figures(outcome, spent)
    times_s = outcome.sent[0].confirm_times_s
    line.p50_ms, line.p99_ms = (percentile(times_s, one) * 1e3 for one in (50, 99))
    if written:
        (make_stream, _), shown = flow.producers[0], flow.consumers[0].message
        line.written = _written(written, shown, make_stream().size, outcome)
    return line


def _written(written: FileBytes, shown: Message, size: int, outcome: Outcome) -> float:
    """Bytes given to write() for files, per byte of published frames; `size` is one message's."""
    delivered = outcome.published * len(shown.delivered(1, "c"))
    to_clients = delivered + outcome.sent[0].confirm_bytes
    return written.written(to_clients) / (outcome.published * size)


def transient(broker: Broker, settings: Settings) -> Figures:
    """Nothing has to be kept, so nothing has to be synced."""
    flow = confirmed_flow(settings, durable=False)
    with Standing(broker, flow):
        return _measure(broker, flow, None)


def persistent(
    broker: Broker,
    settings: Settings,
    *,
    body: bytes = SMALL,
    window: int = WINDOW,
    arguments: bytes = b"",
) -> Figures:
    """p50 and p99 are the times from a quarter of the window to its last confirm.

    The disk's own sync is that of as many bytes as a quarter of the window has.
    """
    flow = confirmed_flow(settings, body, window, arguments=arguments)
    size = len(flow.consumers[0].message.published())
    with Standing(broker, flow):
        disk = DiskSync(broker, max(1, window // 4) * size)
        line = _measure(broker, flow, FileBytes(broker))
    sync_s = disk.median_s()
    line.remark(f"this disk's own sync {sync_s * 1e3:.2f} ms")
    line.goals += _goals(line, window, sync_s)
    return line


def _goals(line: Figures, window: int, sync_s: float) -> list[Goal]:
    assert line.written is not None and line.p50_ms is not None and line.out_rate is not None
    goals: list[Goal] = []
    if window >= WRITTEN_FROM_WINDOW:
        text = f"{WRITTEN_AT_MOST} bytes written per byte received at most"
        goals.append(Goal(text, line.written <= WRITTEN_AT_MOST))
    if window == WRITTEN_FROM_WINDOW:
        wanted = min(HUNDRED_AT_LEAST, window / sync_s / 2)
        goals.append(Goal(f">= {wanted:,.0f}", line.out_rate >= wanted))
    if window == 1:
        most_ms = sync_s * 1e3 + OVER_SYNC_MS
        goals.append(Goal(f"p50 <= {most_ms:.2f} ms", line.p50_ms <= most_ms))
    return goals


SCENARIOS = (
    Scenario("confirm-transient-ack", transient),
    Scenario("confirm-persistent-ack", persistent, 180_000),
    Scenario("confirm-persistent-ack-1k", partial(persistent, body=KIB), 100_000),
    Scenario("confirm-persistent-100", partial(persistent, window=100)),
    Scenario("confirm-persistent-1", partial(persistent, window=1)),
    Scenario("quorum-confirm-ack", partial(persistent, arguments=QUORUM)),
    Scenario("priority-confirm-ack", partial(persistent, arguments=PRIORITIES)),
    Scenario("stream-confirm-read", partial(persistent, arguments=STREAM)),
)
