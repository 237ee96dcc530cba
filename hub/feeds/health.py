"""The health of a feed in words, and figures about all feeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum

from ...core.counted import counted
from .feed import Feed, FeedState, PushState
from .schedule import DAY_S, WEEK_S

DEAD_AFTER_S = 2 * WEEK_S
"""Without any success for so long, a source counts as dead; it is still polled daily."""
DEAD_FAILURES = 5
SILENT_AFTER_S = 365 * DAY_S


class Health(StrEnum):
    """The health of a feed, as `?state=` selects it."""

    NEW = "new"
    OK = "ok"
    FAILING = "failing"
    DEAD = "dead"
    PAUSED = "paused"
    GONE = "gone"


def health_of(feed: Feed, now_s: float) -> Health:
    """Returns the health of a feed at a time."""
    status = feed.status
    if feed.state is FeedState.PAUSED:
        return Health.PAUSED
    if feed.state is FeedState.GONE:
        return Health.GONE
    if status.local_failure:
        return Health.FAILING
    if status.failures:
        since_s = now_s - (status.succeeded_at or status.registered_at)
        is_dead = status.failures >= DEAD_FAILURES and since_s > DEAD_AFTER_S
        return Health.DEAD if is_dead else Health.FAILING
    return Health.OK if status.succeeded_at else Health.NEW


def weekly(feed: Feed, now_s: float) -> float | None:
    """Returns its entries a week, as of now; None while they are unknown."""
    found = feed.status.rates.weekly(now_s)
    return None if found is None else round(found, 1)


def describe(feed: Feed, now_s: float) -> str:
    """Returns its health in one or two sentences."""
    status = feed.status
    match health_of(feed, now_s):
        case Health.NEW:
            return "Not polled yet."
        case Health.PAUSED:
            return "Paused: not polled until it is resumed."
        case Health.GONE:
            return f"Gone, and no longer polled: {status.error}. Remove it, or change its URL."
        case Health.DEAD:
            since = _ago(now_s, status.succeeded_at) if status.succeeded_at else "never"
            return f"Dead: last read {since}, {_times(status.failures)}: {status.error}."
        case Health.FAILING if status.local_failure:
            again = _ahead(now_s, feed.next_at)
            times = _times(status.local_failures)
            return f"Waits: {status.local_failure}. Tried {times}, again {again}."
        case Health.FAILING:
            again = _ahead(now_s, feed.next_at)
            return f"Failed {_times(status.failures)}: {status.error}. Next poll {again}."
    return _ok(feed, now_s)


def statistics(feeds: Iterable[Feed], now_s: float) -> dict[str, object]:
    """Returns figures about these feeds."""
    states, pushes, hosts = Counter[str](), Counter[str](), set[str]()
    total = published = 0
    a_week = 0.0
    for feed in feeds:
        total += 1
        states[health_of(feed, now_s)] += 1
        pushes[feed.status.push.state] += 1
        published += feed.status.published
        a_week += weekly(feed, now_s) or 0.0
        hosts.add(feed.url.split("/", 3)[2])
    return {
        "feeds": total,
        "states": {one.value: states[one] for one in Health},
        "push": {one.value: pushes[one] for one in PushState},
        "hosts": len(hosts),
        "entries_a_week": round(a_week, 1),
        "published": published,
    }


def _ok(feed: Feed, now_s: float) -> str:
    status = feed.status
    parts = [f"Healthy: last read {_ago(now_s, status.succeeded_at)}"]
    a_week = weekly(feed, now_s)
    entries = "entry" if a_week == 1 else "entries"
    parts.append("entries a week unknown" if a_week is None else f"{a_week:g} {entries} a week")
    parts.append(f"next poll {_ahead(now_s, feed.next_at)}")
    text = ", ".join(parts) + "."
    if status.changed_at and now_s - status.changed_at > SILENT_AFTER_S:
        text += f" Nothing new has come since {_ago(now_s, status.changed_at)}."
    match status.push.state:
        case PushState.ACTIVE:
            text += " Changes are pushed."
        case PushState.BROKEN:
            text += f" Push is broken: {status.push.reason}."
    return text + "".join(f" Notice: {notice}." for notice in status.notices)


def _times(failures: int) -> str:
    return "once" if failures == 1 else f"{failures} times"


def _ago(now_s: float, at: float) -> str:
    return f"{_words(now_s - at)} ago"


def _ahead(now_s: float, at: float) -> str:
    return "now" if at <= now_s else f"in {_words(at - now_s)}"


def _words(seconds: float) -> str:
    for unit_s, unit in ((DAY_S, "day"), (3_600.0, "hour"), (60.0, "minute")):
        if seconds >= unit_s:
            return counted(round(seconds / unit_s), unit)
    return "less than a minute"
