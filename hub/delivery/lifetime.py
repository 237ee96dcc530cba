"""When messages expire: their expiration and their queue's time to live count from the first
arrival in the queue, over all the times that the message waits in a retry queue.

Its queue's time to live is the one that is in force now, so a policy that came, changed or went
while the message waited counts as it does for those that never left.
"""

from __future__ import annotations

from dataclasses import replace

from ...core.clock import Clock
from ..engine.port import Delivery
from .envelope import Envelope


def first_arrival_s(envelope: Envelope, delivery: Delivery, clock: Clock) -> float:
    """Returns when the message first came to its queue, in seconds of steady time."""
    return envelope.arrived_at or clock.steady_ms() / 1000 - delivery.age_s


def with_arrival(envelope: Envelope, delivery: Delivery, now_s: float) -> Envelope:
    """Returns the envelope with arrival and expiration, which a retry queue would lose."""
    if envelope.arrived_at:
        return envelope
    expiration = delivery.message.properties.expiration or ""
    return replace(envelope, arrived_at=now_s - delivery.age_s, expiration=expiration)


def left_s(envelope: Envelope, delivery: Delivery, now_s: float) -> float | None:
    """Seconds until it expires, negative when that is over; None if it does not."""
    lives_s = [int(envelope.expiration) / 1000] if envelope.expiration else []
    if delivery.time_to_live_s is not None:
        lives_s.append(delivery.time_to_live_s)
    if not lives_s:
        return None
    waiting_age_s = now_s - envelope.arrived_at if envelope.arrived_at else 0.0
    # Never less than its age in the queue: publishers can make the header up.
    return min(lives_s) - max(delivery.age_s, waiting_age_s)
