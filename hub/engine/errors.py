"""What only some engines can do, engines that can't be reached, and queues that refuse."""

from __future__ import annotations

from typing import Final

from ...core.errors import ChannelError
from ..errors import HubError

REFUSED_BY_QUEUE: Final = (
    "a queue that the message was routed to does not take it now: it is full, or one of RabbitMQ "
    "whose leader is being elected"
)
"""What users are told of `PublishOutcome.REJECTED`."""


class EngineUnavailable(ChannelError):
    """The engine does not answer: whether it has done what was asked is unknown, so it may be asked
    again. As a `ChannelError` it makes deliveries back off and subscriptions wait."""

    def __init__(self, explanation: str) -> None:
        super().__init__(320, explanation)


class NotOnThisEngine(HubError):
    """The embedded engine alone can do what was asked."""

    status = 501
    title = "Not on this engine"

    def __init__(self, what: str, *, instead: str) -> None:
        reason = f"{what} needs the embedded engine, and this hub runs on RabbitMQ: {instead}"
        super().__init__(reason, field="engine")
