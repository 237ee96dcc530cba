"""Filters and pages of subscription listings (docs/rabbithub.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, get_args

import msgspec
from starlette.responses import Response

from ...hub.requests import Word
from ...hub.subscriptions.active import ActiveSubscription
from ..problems import Problem
from ..responses.time_slice import TimeSlice
from .condition import Condition, condition, rank
from .document import described
from .ordering import in_order

PAGE_SIZE, MAX_PAGE_SIZE = 100, 500
DAY_S = 86_400
MAX_DAYS = 36_500
_NO_STORE = {"Cache-Control": "no-cache"}
_STATUSES = ("active", "inactive")
PAGING = ("page", "page_size")
SORTING = ("sort", "sort_reverse")
SORTS: Mapping[str, Callable[[ActiveSubscription], Any]] = {
    "callback": lambda active: active.subscription.callback,
    "resource_name": lambda active: active.subscription.source.name,
    "topic": lambda active: active.subscription.topic,
    "vhost": lambda active: active.subscription.source.vhost,
    "owner": lambda active: active.subscription.owner,
    "id": lambda active: active.subscription.id,
    "status": lambda active: "active" if active.is_served else "inactive",
    "expires_at": lambda active: active.subscription.expires_at,
    "last_success_at": lambda active: active.last_success_at,
    "success_ratio": lambda active: -1.0 if (x := active.success_ratio) is None else x,
    "breaker": lambda active: active.breaker_state.value,
    "errors": lambda active: active.error_count,
    "condition": rank,
}
"""The fields by which listings are sorted, beside their usual order."""
_EXPIRES = "hub.expires"


@dataclass(frozen=True, slots=True)
class SubscriptionFilter:
    """Conditions on a subscription; None matches all. `expires_before` is wall time in seconds."""

    vhost: str | None = None
    resource_type: str | None = None
    resource_name: str | None = None
    topic: str | None = None
    callback: str | None = None
    status: str | None = None
    name: str | None = None
    """Part of the callback or of the source's name."""
    expires_before: float | None = None
    condition: str | None = None

    def passes(self, active: ActiveSubscription) -> bool:
        found = active.subscription
        return (
            self.vhost in (None, found.source.vhost)
            and self.resource_type in (None, found.source.word)
            and self.resource_name in (None, found.source.name)
            and (self.topic is None or self.topic in (found.topic, found.topic_url))
            and self.callback in (None, found.callback)
            and (self.status is None or (self.status == "active") is active.is_served)
            and (self.name is None or self.name in found.callback or self.name in found.source.name)
            and (self.expires_before is None or found.expires_at < self.expires_before)
            and (self.condition is None or condition(active) == self.condition)
        )


@dataclass(frozen=True, slots=True)
class ListingPage:
    """One page of a listing; pages are counted from 1."""

    number: int
    size: int


def read_filter(query: Mapping[str, str], now: float) -> SubscriptionFilter:
    """Reads the filter. Raises `Problem` 400 for an unknown parameter or a bad value."""
    words = {field.name for field in fields(SubscriptionFilter)} - {"expires_before"}
    given = {name: value for name, value in query.items() if name not in (*PAGING, *SORTING)}
    unknown = next((name for name in given if name not in words | {_EXPIRES}), None)
    if unknown is not None:
        known = ", ".join(sorted({*words, _EXPIRES, *PAGING, *SORTING}))
        raise Problem(400, f"unknown parameter {unknown[:80]}; known are {known}")
    _check_word("status", given, _STATUSES)
    _check_word("resource_type", given, get_args(Word))
    _check_word("condition", given, get_args(Condition))
    days = given.pop(_EXPIRES, None)
    before = None if days is None else now + _number(_EXPIRES, days, MAX_DAYS) * DAY_S
    return SubscriptionFilter(**given, expires_before=before)


def read_page(query: Mapping[str, str]) -> ListingPage | None:
    """Returns None if no page is requested: RabbitHub lists all at once. Raises `Problem` 400."""
    if not any(name in query for name in PAGING):
        return None
    number = _number("page", query.get("page", "1"), 2**31 - 1)
    size = _number("page_size", query.get("page_size", str(PAGE_SIZE)), MAX_PAGE_SIZE)
    return ListingPage(number, size)


@dataclass(frozen=True, slots=True)
class ListingOrder:
    """The order of a listing."""

    key: Callable[[ActiveSubscription], Any]
    is_reversed: bool = False


def read_order(query: Mapping[str, str]) -> ListingOrder:
    """Returns the usual order unless another is requested. Raises `Problem` 400."""
    _check_word("sort", query, tuple(SORTS))
    _check_word("sort_reverse", query, ("true", "false"))
    key = SORTS.get(query.get("sort", ""), order)
    return ListingOrder(key, query.get("sort_reverse") == "true")


def order(active: ActiveSubscription) -> tuple[str, ...]:
    """Returns the sort key of listings: resource, topic, callback, id."""
    found = active.subscription
    source = found.source
    return source.vhost, source.kind, source.name, found.topic, found.callback, found.id


async def answer(
    key: str,
    active_subscriptions: Iterable[ActiveSubscription],
    page: ListingPage | None,
    describe: Callable[[ActiveSubscription], Any] = described,
    by: ListingOrder | None = None,
    passes: Callable[[ActiveSubscription], bool] = lambda _: True,
    more: Mapping[str, Any] | None = None,
) -> Response:
    """Returns `{key: [...]}` of those that pass, with RabbitMQ's paging keys if a page is
    requested, and what is given as `more`."""
    by = by or ListingOrder(order)
    rows = tuple(active_subscriptions)
    found = await in_order(rows, by.key, passes, reverse=by.is_reversed)
    paging = {} if page is None else {**paging_of(page, len(found)), "total_count": len(rows)}
    if page is not None:
        found = found[(page.number - 1) * page.size : page.number * page.size]
    parts, time_slice = [], TimeSlice()
    for active in found:
        parts.append(msgspec.json.encode(describe(active)))
        await time_slice.yield_if_over()
    rest = msgspec.json.encode({**paging, **(more or {})})[1:]
    comma = b"," if len(rest) > 1 else b""
    body = b'{"%s":[%s]%s%s' % (key.encode(), b",".join(parts), comma, rest)
    return Response(body, media_type="application/json", headers=_NO_STORE)


def paging_of(page: ListingPage, count: int) -> dict[str, int]:
    """Returns RabbitMQ's paging keys for `count` matching objects."""
    return {
        "page": page.number,
        "page_size": page.size,
        "page_count": -(-count // page.size),
        "filtered_count": count,
    }


def _check_word(name: str, given: Mapping[str, str], words: tuple[str, ...]) -> None:
    if name in given and given[name] not in words:
        raise Problem(400, f"{name} is '{given[name][:80]}'; give one of {', '.join(words)}")


def _number(name: str, value: str, most: int) -> int:
    if not (value.isascii() and value.isdigit() and len(value) <= 10 and 1 <= int(value) <= most):
        raise Problem(400, f"{name} is '{value[:80]}', not a number from 1 to {most}")
    return int(value)
