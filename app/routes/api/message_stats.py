"""Counters with their rates and samples, as `message_stats` has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ....core.broker import Broker
from ....core.clock import wall_ms
from ....core.statistics.counters import ChurnCounters, Counters, Values
from ....core.statistics.ring import Ring
from ...problems import Problem

_SUMS: Final = {
    "deliver_get": ("deliver", "deliver_no_ack", "get", "get_no_ack"),
    "messages": ("messages_ready", "messages_unacknowledged"),
}
"""Numbers that are sums of counters."""
MESSAGE_NAMES: Final = (
    "publish", "confirm", "return_unroutable", "drop_unroutable", "deliver", "deliver_no_ack",
    "deliver_get", "get", "get_no_ack", "get_empty", "redeliver", "ack", "reject",
)  # fmt: skip
QUEUE_NAMES: Final = (
    "publish", "deliver", "deliver_no_ack", "deliver_get", "get", "get_no_ack", "get_empty",
    "redeliver", "ack", "reject",
)  # fmt: skip
EXCHANGE_NAMES: Final = ("publish_in", "publish_out")
LENGTH_NAMES: Final = ("messages", "messages_ready", "messages_unacknowledged")
CHURN_NAMES: Final = tuple(name for name in ChurnCounters.FIELDS if not name.startswith("login_"))
MAX_AGE_S: Final = 86_400
MAX_SAMPLES: Final = 1_000
"""The limit of samples of one number; a window with more has the newest."""
MESSAGE_RATES: Final = "msg_rates"


class Window(NamedTuple):
    """The samples that a request wants: back to `age_s`, one each `step_s`."""

    age_s: int
    step_s: int


def read_window(query: Mapping[str, str], name: str = MESSAGE_RATES) -> Window | None:
    """Returns the samples wanted by `NAME_age` and `NAME_incr`; None without both, as in RabbitMQ.

    Raises `Problem` 400 for numbers that can't be used.
    """
    age, step = (
        _seconds(key, query[key]) if key in query else None
        for key in (f"{name}_age", f"{name}_incr")
    )
    return None if age is None or step is None else Window(age, step)


def _seconds(name: str, value: str) -> int:
    if not (value.isascii() and value.isdigit() and 1 <= int(value[:9]) <= MAX_AGE_S):
        raise Problem(400, f"{name} is '{value[:80]}', it has to be 1 to {MAX_AGE_S} seconds")
    return int(value)


def message_stats(
    broker: Broker,
    counters: Counters | None,
    names: tuple[str, ...] = MESSAGE_NAMES,
    *,
    window: Window | None = None,
    ring: Ring | None = None,
) -> dict[str, Any]:
    """Returns each number with its `_details`: the rate, and samples if a window is wanted.

    Without counters, nothing was counted yet: the result is empty. `ring` is where the samples are
    if not in the sampler's.
    """
    if counters is None:
        return {}
    sampler = broker.statistics.sampler
    samples: list[tuple[int, Values]] = []
    if window is not None:
        ring = ring or sampler.ring(counters)
        samples = [] if ring is None else samples_of(broker, ring, window)
    found: dict[str, Any] = {}
    for name in names:
        fields = _SUMS.get(name, (name,))
        found[name] = sum(getattr(counters, field) for field in fields)
        rate = sum(sampler.rate(counters, field) for field in fields)
        details: dict[str, Any] = {"rate": rate}
        if window is not None:
            places = [counters.FIELDS.index(field) for field in fields]
            sums = [(at_ms, sum(values[at] for at in places)) for at_ms, values in samples]
            details |= sampled(sums)
        found[f"{name}_details"] = details
    return found


def samples_of(broker: Broker, ring: Ring, window: Window) -> list[tuple[int, Values]]:
    """Returns the samples of a window with their wall times, newest first."""
    step_ms = window.step_s * 1000
    newest_ms = broker.now_ms - broker.now_ms % step_ms
    count = min(window.age_s // window.step_s, MAX_SAMPLES) + 1
    times = (newest_ms - at * step_ms for at in range(count))
    shift_ms = wall_ms(broker.clock) - broker.clock.now_ms()
    return [(at_ms + shift_ms, values) for at_ms, values in ring.at(times)]


def sampled(sums: list[tuple[int, int]]) -> dict[str, Any]:
    """Returns the samples of one number, their average, and the average rate between them."""
    found = [{"sample": value, "timestamp": at_ms} for at_ms, value in sums]
    if not found:
        return {"samples": [], "avg": 0.0, "avg_rate": 0.0}
    first, last = found[-1], found[0]
    elapsed_ms = last["timestamp"] - first["timestamp"]
    grown = last["sample"] - first["sample"]
    return {
        "samples": found,
        "avg": sum(one["sample"] for one in found) / len(found),
        "avg_rate": grown * 1000 / elapsed_ms if elapsed_ms else 0.0,
    }
