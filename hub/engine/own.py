"""What the hub declares for itself, under names that nobody else may take.

An engine that starts with others under these names renames them first: `is_own` tells which.
"""

from __future__ import annotations

import re

from ...core.definitions.kinds import ExchangeDefinition, QueueDefinition
from ...core.message.model import Table
from ..delivery.envelope import DELAY_PREFIX
from ..subscriptions.subscription import ANONYMOUS_LIMITS, OWN_QUEUE_PREFIX
from ..topics.names import CONTENT, ENTRIES
from .port import BindingSpec, ExchangeSpec, QueueSpec

DEAD_QUEUE = QueueSpec("hub.dead")
TOPICS = tuple(ExchangeSpec(name, "direct") for name in (CONTENT, ENTRIES))
_DELAY_NAME = re.compile(re.escape(DELAY_PREFIX) + r"([1-9][0-9]{0,6})s")
_SUBSCRIPTION_NAME = re.compile(re.escape(OWN_QUEUE_PREFIX) + "[0-9a-f]{32}")


def delay(seconds: int) -> tuple[ExchangeSpec, QueueSpec, BindingSpec]:
    """A fanout exchange and the queue behind it: what is published there with the name of a queue
    as its key comes back to that queue when the time is over."""
    name = f"{DELAY_PREFIX}{seconds}s"
    arguments: Table = {
        "x-message-ttl": seconds * 1000,
        "x-dead-letter-exchange": "",
        # Home may be full by then, or know the message by its id for deduplication.
        "x-dead-letter-strategy": "at-least-once",
    }
    return (
        ExchangeSpec(name, "fanout"),
        QueueSpec(name, arguments=arguments),
        BindingSpec(name, name),
    )


def is_own(found: ExchangeDefinition | QueueDefinition) -> bool:
    """Whether it is what the hub declares under this name."""
    if isinstance(found, ExchangeDefinition):
        exchange = ExchangeSpec(
            found.name, found.type_name, True, found.auto_delete, found.internal, found.arguments
        )
        return exchange in TOPICS or exchange == _delayed(found.name, 0)
    queue = QueueSpec(found.name, True, found.auto_delete, False, found.arguments)
    if _SUBSCRIPTION_NAME.fullmatch(found.name):
        return queue.arguments in ({}, ANONYMOUS_LIMITS) and queue == QueueSpec(
            found.name, arguments=queue.arguments
        )
    return queue == DEAD_QUEUE or queue == _delayed(found.name, 1)


def _delayed(name: str, part: int) -> ExchangeSpec | QueueSpec | BindingSpec | None:
    match = _DELAY_NAME.fullmatch(name)
    return None if match is None else delay(int(match[1]))[part]
