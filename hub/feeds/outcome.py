"""Computes the state of a feed after a poll: functions from one value to the next, without side
effects."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from msgspec.structs import replace

from ..formats.read_feed import ReadFeed
from .changes import Changes
from .feed import Feed, FeedState, FeedStatus, PushState
from .rate import by_dates
from .schedule import (
    DAY_S,
    MAX_INTERVAL_S,
    failed_interval_s,
    interval_s,
    next_at,
    postponed_s,
)
from .source import FeedFailed, FetchedFeed

MAX_NOTICES = 10
PUSHED_INTERVAL_S = 0.9 * DAY_S
"""With jitter less than a day: a registration at a cloud has to be renewed then."""
_MAX_ERROR = 500


def unchanged(
    feed: Feed, fetched: FetchedFeed, now_s: float, min_interval_s: float, chance: float
) -> Feed:
    """Returns the feed after a fetch, or after an answer that it has not changed."""
    after = _succeeded(feed, fetched, 0, now_s)
    return scheduled(after, fetched.fresh_s, now_s, min_interval_s, chance)


def changed(
    feed: Feed,
    fetched: FetchedFeed,
    read: ReadFeed,
    changes: Changes,
    notice: str,
    now_s: float,
    min_interval_s: float,
    chance: float,
) -> Feed:
    """Returns the feed after it was read; `changes` may be empty, and `notice` is about their
    messages."""
    before = feed.status
    notices = [one for one in (notice, changes.notice, *read.notices) if one]
    status = replace(
        before,
        title=read.head.title,
        home_page_url=read.head.home_page_url,
        format=read.format,
        notices=tuple(notices[:MAX_NOTICES]),
        changed_at=now_s if changes.items else before.changed_at,
        rates=replace(before.rates, dated=by_dates(_dates(read), now_s)),
        hints=read.hints,
        entries=len(read.items),
        published=before.published + len(changes.items),
    )
    after = replace(feed, status=status)
    seen = changes.count if before.succeeded_at else 0
    after = _succeeded(after, fetched, seen, now_s)
    most_s = before.interval_s / 2 if changes.is_all_new else MAX_INTERVAL_S
    return scheduled(after, fetched.fresh_s, now_s, min_interval_s, chance, most_s)


def failed(feed: Feed, error: FeedFailed, now_s: float, chance: float) -> Feed:
    """Returns the feed after it could not be fetched or read; what is known of it stays."""
    status = replace(
        feed.status,
        checked_at=now_s,
        failures=feed.status.failures + 1,
        error=str(error)[:_MAX_ERROR],
        local_failure="",
        local_failures=0,
    )
    if error.is_gone:
        return replace(feed, state=FeedState.GONE, status=status, next_at=0.0)
    wait_s = max(failed_interval_s(status.interval_s, status.failures), error.wait_s)
    at = next_at(now_s, wait_s, None, chance)
    return replace(feed, state=_polled(feed), status=status, next_at=at)


def asked_anew(feed: Feed, wanted: Feed, now_s: float) -> Feed:
    """Returns the feed after a change of its request: another URL, selector or hub is due at once,
    and with another URL it is as before its first poll."""
    status = wanted.status
    if wanted.url != feed.url:
        status = FeedStatus(
            title=status.title, registered_at=status.registered_at, checked_at=status.checked_at,
            changed_at=status.changed_at, published=status.published, push=status.push,
            is_unpublished=status.is_unpublished,
        )  # fmt: skip
    elif (wanted.request.selector, wanted.request.hub) != (feed.request.selector, feed.request.hub):
        status = replace(status, etag="", last_modified="", digest="")
    if status is feed.status:
        return wanted
    return replace(wanted, state=_polled(wanted), status=status, next_at=now_s)


def postponed(feed: Feed, reason: str, now_s: float) -> Feed:
    """Returns the feed after a poll that this side could not store or publish; it is repeated
    soon."""
    count = feed.status.local_failures + 1
    status = replace(feed.status, local_failure=reason[:_MAX_ERROR], local_failures=count)
    return replace(feed, status=status, next_at=now_s + postponed_s(count))


def scheduled(
    feed: Feed,
    fresh_s: float,
    now_s: float,
    min_interval_s: float,
    chance: float,
    most_s: float = MAX_INTERVAL_S,
) -> Feed:
    """Returns the feed with the time of its next poll; where changes are pushed, polls are a day
    apart."""
    status = feed.status
    floor_s = feed.request.min_interval_s or min_interval_s
    weekly = status.rates.expected(now_s)
    interval = interval_s(weekly, floor_s, status.hints, fresh_s, most_s)
    if status.push.state is PushState.ACTIVE:
        interval = max(interval, PUSHED_INTERVAL_S)
    at = next_at(now_s, interval, status.hints, chance)
    return replace(feed, status=replace(status, interval_s=interval), next_at=at)


def _polled(feed: Feed) -> FeedState:
    """Returns the feed after any poll: one at somebody's request leaves a paused feed paused, and
    revives one that was gone."""
    return feed.state if feed.state is FeedState.PAUSED else FeedState.ACTIVE


def _succeeded(feed: Feed, fetched: FetchedFeed, changes: int, now_s: float) -> Feed:
    status = replace(
        feed.status, etag=fetched.etag, last_modified=fetched.last_modified,
        digest=fetched.digest, checked_at=now_s, succeeded_at=now_s, failures=0, error="",
        local_failure="", local_failures=0, rates=feed.status.rates.polled(changes, now_s),
    )  # fmt: skip
    return replace(feed, state=_polled(feed), status=status)


def _dates(read: ReadFeed) -> Iterable[float]:
    for one in read.items:
        text = one.item.date_published or one.item.date_modified
        try:
            date = datetime.fromisoformat(text)
        except ValueError:
            continue
        yield date.replace(tzinfo=date.tzinfo or UTC).timestamp()
