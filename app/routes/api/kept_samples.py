"""Samples that the server keeps of itself: the lengths of all queues, and figures of the node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ...overview.history import KEPT, NODE_FIELDS
from .call import Call
from .message_stats import Window, read_window, sampled, samples_of

NODE_STATISTICS: Final = "node_stats"
LENGTHS: Final = "lengths"
_LAST: Final = Window(5, 5)
"""What rates are of."""
_QUEUES: Final = {
    "messages": ("messages_ready", "messages_unacknowledged"),
    "messages_ready": ("messages_ready",),
    "messages_unacknowledged": ("messages_unacknowledged",),
}


def node_details(call: Call) -> dict[str, Any]:
    """Returns how fast figures of the node change, with samples if `node_stats_age` asks for them.
    Raises `Problem` 400."""
    window = read_window(call.request.query_params, NODE_STATISTICS)
    found = {}
    for name in NODE_FIELDS:
        rate = sampled(_sums(call, (name,), _LAST))["avg_rate"]
        found[f"{name}_details"] = {"rate": rate, **_sampled(call, (name,), window)}
    return found


def length_samples(call: Call) -> dict[str, dict[str, Any]]:
    """Returns samples of the lengths of all queues, if `lengths_age` asks for them, by their names
    in `queue_totals`. Raises `Problem` 400."""
    window = read_window(call.request.query_params, LENGTHS)
    return {name: _sampled(call, fields, window) for name, fields in _QUEUES.items()}


def _sampled(call: Call, fields: Sequence[str], window: Window | None) -> dict[str, Any]:
    return {} if window is None else sampled(_sums(call, fields, window))


def _sums(call: Call, fields: Sequence[str], window: Window) -> list[tuple[int, int]]:
    """Returns the sums of fields over time, with wall times, newest first."""
    overview = call.context.overview
    if overview is None:
        return []
    places = [KEPT.index(field) for field in fields]
    ring = overview.samples.ring(window.age_s)
    return [
        (at_ms, sum(values[at] for at in places))
        for at_ms, values in samples_of(call.broker, ring, window)
    ]
