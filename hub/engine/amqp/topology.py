"""How the hub's exchanges and queues are declared on RabbitMQ.

Durable queues are quorum queues. A message that waits for a retry has to find its queue again, and
to be dropped if that was deleted: a delay queue that can't place a message would hold up all others
behind it. So it is dead-lettered to the exchange `hub.returned`, to which each queue with a
consumer of the hub is bound by its name, and what no queue takes ends in `hub.gone`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ....core.message.model import Table
from ...subscriptions.subscription import OWN_QUEUE_PREFIX
from ..port import BindingSpec, ExchangeSpec, QueueSpec

OWN_PREFIX: Final = "hub."
LIVE_PREFIX: Final = "hub.live."
RETURNED: Final = ExchangeSpec(
    "hub.returned", "direct", arguments={"alternate-exchange": "hub.gone"}
)
GONE: Final = ExchangeSpec("hub.gone", "fanout")
GONE_QUEUE: Final = QueueSpec("hub.gone", arguments={"x-max-length": 1_000})
GONE_BINDING: Final = BindingSpec(GONE.name, GONE_QUEUE.name)

STREAMS: Final = ExchangeSpec("hub.streams", "direct", internal=True)
"""Nothing is published there: the key of a stream's binding identifies it (`streams.py`)."""

NO_DELIVERY_LIMIT: Final = 1_000_000_000
"""Without a limit RabbitMQ 4 drops after 20 returns, and all return to the back of the queue."""
PROBE_PREFIX: Final = "hub.probe."
PROBE_EXPIRES_MS: Final = 3_600_000
"""How long the queue of a node's probe is kept that no hub consumes any more."""
LIVE_EXPIRES_MS: Final = 60_000
"""How long the queue of a live stream is kept that nobody has begun to consume."""


def own_queue(spec: QueueSpec) -> QueueSpec:
    """Returns the queue as it is declared on RabbitMQ; those of users stay as they ask for."""
    if spec.exclusive:
        # Not exclusive, since that would bind it to one connection.
        arguments: Table = {**spec.arguments, "x-expires": LIVE_EXPIRES_MS}
        return replace(spec, durable=True, exclusive=False, arguments=arguments)
    if not spec.name.startswith(OWN_PREFIX):
        return spec
    arguments = {
        **spec.arguments,
        "x-queue-type": "quorum",
        "x-delivery-limit": NO_DELIVERY_LIMIT,
    }
    if spec.name.startswith(OWN_QUEUE_PREFIX):
        arguments["x-single-active-consumer"] = True
    if "x-dead-letter-strategy" in arguments:
        arguments["x-dead-letter-exchange"] = RETURNED.name
        arguments["x-overflow"] = "reject-publish"  # at-least-once needs it
    return replace(spec, arguments=arguments)


def probe_queue(node: str) -> QueueSpec:
    """Returns the queue by which a node is probed, as it is declared."""
    arguments: Table = {"x-expires": PROBE_EXPIRES_MS, "x-max-length": 10}
    return own_queue(QueueSpec(PROBE_PREFIX + node, arguments=arguments))


def return_binding(queue: str) -> BindingSpec:
    """Returns the binding by which messages return to a queue."""
    return BindingSpec(RETURNED.name, queue, routing_key=queue)
