"""Computes when messages expire: expiration and the queue's time to live count from the first
arrival in the queue, including the time in retry queues.

The queue's time to live is the one in force now, so a policy that was changed while a message
waited applies as it does to the messages in the queue.
"""

from __future__ import annotations

from dataclasses import replace

from ...core.clock import Clock
from ..engine.port import Delivery
from .envelope import Envelope


def first_arrival_s(envelope: Envelope, delivery: Delivery, clock: Clock) -> float:
    """Returns when the message first arrived in its queue, in seconds of steady time."""
    return envelope.arrived_at or clock.steady_ms() / 1000 - delivery.age_s


def with_arrival(envelope: Envelope, delivery: Delivery, now_s: float) -> Envelope:
    """Returns the envelope with arrival and expiration, which a copy loses."""
    if envelope.arrived_at:
        return envelope
    expiration = delivery.message.properties.expiration or ""
    return replace(envelope, arrived_at=now_s - delivery.age_s, expiration=expiration)


def left_s(envelope: Envelope, delivery: Delivery, now_s: float) -> float | None:
    """Returns the seconds until it expires, negative if it has expired; None if it does not."""
    lives_s = [int(envelope.expiration) / 1000] if envelope.expiration else []
    if delivery.time_to_live_s is not None:
        lives_s.append(delivery.time_to_live_s)
    if not lives_s:
        return None
    waiting_age_s = now_s - envelope.arrived_at if envelope.arrived_at else 0.0
    # At least its age in the queue: publishers can write the header too.
    return min(lives_s) - max(delivery.age_s, waiting_age_s)
