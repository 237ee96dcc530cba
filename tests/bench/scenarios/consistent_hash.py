"""x-consistent-hash: a million keys, so that no route is remembered, at several weights."""

from __future__ import annotations

from functools import partial

from ..consumer import Subscription
from ..flow import Exchange, Flow
from ..frames import Message
from ..producer import Load
from ..scenario import Settings
from .honest import EXCHANGE, MILLION, key_stream
from .throughput import QUEUES, SMALL, row

KIND = "x-consistent-hash"
MANY = 64


def _flow(settings: Settings, bindings: tuple[tuple[str, str], ...], keys: int) -> Flow:
    """Consumers take from all queues."""
    message = Message(EXCHANGE, "key.0000000", SMALL)
    queues = tuple(queue for queue, _ in bindings)
    return Flow(
        queues,
        ((partial(key_stream, keys), Load(settings.seconds)),),
        tuple(Subscription(queue, message, same_body=False) for queue in queues),
        (Exchange(EXCHANGE, KIND, bindings),),
    )


def four_queues(settings: Settings, *, weight: int, keys: int = MILLION) -> Flow:
    """Two of this weight, two of twice as much (of this one, if that is too much)."""
    heavy = min(10_000, 2 * weight)
    weights = (weight, weight, heavy, heavy)
    return _flow(settings, tuple(zip(QUEUES, map(str, weights), strict=True)), keys)


def many_queues(settings: Settings, *, weight: int) -> Flow:
    bindings = tuple((f"bench-h{number:02}", str(weight)) for number in range(MANY))
    return _flow(settings, bindings, MILLION)


SCENARIOS = (
    *(
        row(f"hash-weight-{weight}", partial(four_queues, weight=weight))
        for weight in (10, 1_000, 10_000)
    ),
    row(f"hash-{MANY}-queues", partial(many_queues, weight=10)),
    row("hash-keys-10", partial(four_queues, weight=10, keys=10)),
)
