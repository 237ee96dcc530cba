"""Dead letters as deliveries leave them."""

from __future__ import annotations

from tests.hub.support import House
from warrenmq.core.clock import Clock, SystemClock
from warrenmq.core.message.model import Message, Properties, Table
from warrenmq.hub.delivery.envelope import Envelope
from warrenmq.hub.delivery.retry_queues import RetryQueues


async def add_dead_letter(
    house: House,
    subscription_id: str,
    body: bytes = b"bonjour",
    *,
    number: int = 1,
    key: str = "eu.fr",
    exchange: str = "news",
    reason: str = "12 attempts, the last: status 503",
    vhost: str = "/",
    headers: Table | None = None,
    clock: Clock | None = None,
) -> None:
    properties = Properties(
        content_type="text/plain", headers={"x-mine": 1, **(headers or {})}, delivery_mode=2
    )
    message = Message(exchange, key, properties, body)
    envelope = Envelope(f"msg_{number}", exchange, key, failures=12, failed_at=1_700_000_000.0)
    retry_queues = RetryQueues(house.engine, clock or SystemClock(), house.hub.internal_headers)
    await retry_queues.add_dead_letter(vhost, message, envelope, subscription_id, reason)
