"""The plain rows: identical messages, as fast as they go."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..brokers import Broker
from ..consumer import Subscription
from ..figures import Figures
from ..flow import Exchange, Flow, run
from ..frames import Message, Stream
from ..producer import Load
from ..scenario import Scenario, Settings

QUEUES = ("bench-q1", "bench-q2", "bench-q3", "bench-q4")
SMALL, KIB = b"0123456789abcdef", bytes(1_024)
PREFETCH, ACK_EVERY = 2_000, 500


def to_queue(queue: str = QUEUES[0], body: bytes = SMALL) -> Message:
    """A message for the default exchange, which routes by the queue's name."""
    return Message("", queue, body)


def one_to_one(
    settings: Settings, body: bytes = SMALL, *, prefetch: int = 0, ack_every: int = 0
) -> Flow:
    message = to_queue(body=body)
    return Flow(
        QUEUES[:1],
        ((partial(Stream.repeat, message), Load(settings.seconds)),),
        (Subscription(QUEUES[0], message, prefetch, ack_every),),
    )


def acked(settings: Settings) -> Flow:
    return one_to_one(settings, prefetch=PREFETCH, ack_every=ACK_EVERY)


def publish_only(settings: Settings) -> Flow:
    return Flow(QUEUES[:1], ((partial(Stream.repeat, to_queue()), Load(settings.seconds)),))


def one_to_four(kind: str, keys: tuple[str, ...], settings: Settings) -> Flow:
    message = Message("bench-x", "bench.key", SMALL)
    exchange = Exchange("bench-x", kind, tuple(zip(QUEUES, keys, strict=True)))
    return Flow(
        QUEUES,
        ((partial(Stream.repeat, message), Load(settings.seconds)),),
        tuple(Subscription(queue, message) for queue in QUEUES),
        (exchange,),
        copies=4,
    )


def two_by_two(settings: Settings) -> Flow:
    messages = [to_queue(queue) for queue in QUEUES[:2]]
    return Flow(
        QUEUES[:2],
        tuple((partial(Stream.repeat, one), Load(settings.seconds)) for one in messages),
        tuple(Subscription(one.key, one) for one in messages),
    )


def row(name: str, flow: Callable[[Settings], Flow], floor: float | None = None) -> Scenario:
    """A scenario that only runs a flow."""

    def measure(broker: Broker, settings: Settings) -> Figures:
        return run(broker, flow(settings))

    return Scenario(name, measure, floor)


TOPIC_KEYS = ("bench.*", "bench.#", "*.key", "#")

SCENARIOS = (
    row("one-to-one", one_to_one, 450_000),
    row("one-to-one-1k", partial(one_to_one, body=KIB), 250_000),
    row("acked", acked, 400_000),
    row("publish-only", publish_only, 650_000),
    row("fanout-1-4", partial(one_to_four, "fanout", ("", "", "", "")), 1_000_000),
    row("topic-1-4", partial(one_to_four, "topic", TOPIC_KEYS), 1_000_000),
    row("2x2", two_by_two),
)
