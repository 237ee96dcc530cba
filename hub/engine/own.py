"""The exchanges and queues that the hub declares, under reserved names.

Objects of others with these names are renamed at the start: `is_own` recognises the hub's.
"""

from __future__ import annotations

import re

from ...core.auth.reserved import ATTEMPTS_EXCHANGE, FEEDS_EXCHANGE
from ...core.definitions.kinds import ExchangeDefinition, QueueDefinition
from ...core.message.model import Table
from ..delivery.envelope import DELAY_PREFIX
from ..subscriptions.subscription import ANONYMOUS_LIMITS, OWN_QUEUE_PREFIX
from ..topics.names import CONTENT, ENTRIES
from .port import BindingSpec, ExchangeSpec, QueueSpec

DEAD_QUEUE = QueueSpec("hub.dead")
TOPICS = tuple(ExchangeSpec(name, "direct") for name in (CONTENT, ENTRIES))
ATTEMPTS = ExchangeSpec(ATTEMPTS_EXCHANGE, "topic")
FEEDS = ExchangeSpec(FEEDS_EXCHANGE, "topic")
RESULTS = QueueSpec("hub.results", arguments={"x-max-length-bytes": 64 * 1024 * 1024})
"""The queue in which results of pipeline jobs wait until they are stored; while the database can't
be reached the newest ones stay."""
OUTPUT_PREFIX = "hub.output."
"""The beginning of the name of an output's queue, followed by the output's name."""
_OUTPUT_NAME = re.compile(re.escape(OUTPUT_PREFIX) + r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_DELAY_NAME = re.compile(re.escape(DELAY_PREFIX) + r"([1-9][0-9]{0,6})s")
_SUBSCRIPTION_NAME = re.compile(re.escape(OWN_QUEUE_PREFIX) + "[0-9a-f]{32}")


def delay(seconds: int) -> tuple[ExchangeSpec, QueueSpec, BindingSpec]:
    """Returns a delay queue with its fanout exchange and binding: a message that is published there
    with the name of a queue as its key returns to that queue after the time."""
    name = f"{DELAY_PREFIX}{seconds}s"
    arguments: Table = {
        "x-message-ttl": seconds * 1000,
        "x-dead-letter-exchange": "",
        # The queue may be full by then, or refuse the message as a duplicate.
        "x-dead-letter-strategy": "at-least-once",
    }
    return (
        ExchangeSpec(name, "fanout"),
        QueueSpec(name, arguments=arguments),
        BindingSpec(name, name),
    )


def is_own(found: ExchangeDefinition | QueueDefinition) -> bool:
    """Returns whether a queue or an exchange is as the hub declares it."""
    if isinstance(found, ExchangeDefinition):
        exchange = ExchangeSpec(
            found.name, found.type_name, True, found.auto_delete, found.internal, found.arguments
        )
        return exchange in (*TOPICS, ATTEMPTS, FEEDS) or exchange == _delayed(found.name, 0)
    queue = QueueSpec(found.name, True, found.auto_delete, False, found.arguments)
    if _SUBSCRIPTION_NAME.fullmatch(found.name):
        return queue.arguments in ({}, ANONYMOUS_LIMITS) and queue == QueueSpec(
            found.name, arguments=queue.arguments
        )
    if _OUTPUT_NAME.fullmatch(found.name):
        return queue == QueueSpec(found.name)
    return queue in (DEAD_QUEUE, RESULTS) or queue == _delayed(found.name, 1)


def _delayed(name: str, part: int) -> ExchangeSpec | QueueSpec | BindingSpec | None:
    match = _DELAY_NAME.fullmatch(name)
    return None if match is None else delay(int(match[1]))[part]
