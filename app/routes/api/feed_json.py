"""Feeds as JSON documents, and the requests about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, cast, get_args

from msgspec.structs import replace

from ....hub.feeds.feed import EXCHANGE, Feed, FeedRequest, FeedState, FeedVisibility
from ....hub.feeds.health import describe, health_of, weekly
from ....hub.feeds.imports import Import
from ....hub.feeds.privacy import without_paths
from ...problems import Problem
from ...responses.times import rfc3339
from .body import Body

KEYS = ("url", "name", "vhost", "first", "min_interval_s", "selector", "hub", "visibility")
ORDERS: Final[Mapping[str, Callable[[Feed, float], Any]]] = {
    "name": lambda feed, _: feed.name,
    "vhost": lambda feed, _: feed.vhost,
    "owner": lambda feed, _: feed.owner,
    "title": lambda feed, _: feed.status.title.casefold(),
    "format": lambda feed, _: feed.status.format,
    "state": lambda feed, now_s: health_of(feed, now_s).value,
    "push": lambda feed, _: feed.status.push.state.value,
    "checked_at": lambda feed, _: feed.status.checked_at,
    "changed_at": lambda feed, _: feed.status.changed_at,
    "next_poll_at": lambda feed, _: feed.next_at,
    "failures": lambda feed, _: feed.status.failures,
    "entries": lambda feed, _: feed.status.entries,
    "entries_a_week": lambda feed, now_s: -1.0 if (found := weekly(feed, now_s)) is None else found,
    "published": lambda feed, _: feed.status.published,
}
"""The members that lists are sorted by, at a time."""
CHANGEABLE = ("url", "min_interval_s", "selector", "hub", "visibility")


def described(feed: Feed, now_s: float, *, shows_urls: bool) -> dict[str, Any]:
    """Returns the document of a feed; times are null for never. Without `shows_urls` only scheme
    and host are left of its URLs."""
    found = _described(feed, now_s)
    return found if shows_urls else cast(dict[str, Any], without_paths(found))


def _described(feed: Feed, now_s: float) -> dict[str, Any]:
    status, request = feed.status, feed.request
    push = status.push
    return {
        "name": feed.name,
        "vhost": feed.vhost,
        "owner": feed.owner,
        "url": feed.url,
        "title": status.title,
        "home_page_url": status.home_page_url,
        "format": status.format,
        "exchange": EXCHANGE,
        "routing_key": feed.name,
        "state": health_of(feed, now_s).value,
        "health": describe(feed, now_s),
        "registered_at": rfc3339(status.registered_at),
        "checked_at": rfc3339(status.checked_at),
        "succeeded_at": rfc3339(status.succeeded_at),
        "changed_at": rfc3339(status.changed_at),
        "next_poll_at": rfc3339(feed.next_at if feed.state is FeedState.ACTIVE else 0.0),
        "interval_s": round(status.interval_s),
        "failures": status.failures,
        "error": status.local_failure or status.error,
        "notices": list(status.notices),
        "entries": status.entries,
        "entries_a_week": weekly(feed, now_s),
        "published": status.published,
        "first": request.first,
        "min_interval_s": request.min_interval_s or None,
        "selector": request.selector,
        "hub": request.hub,
        "visibility": request.visibility,
        "folder": request.folder,
        "push": {
            "state": push.state.value,
            "hub_url": push.hub_url,
            "cloud": f"{push.cloud.domain}:{push.cloud.port}" if push.cloud else "",
            "reason": push.reason,
            "received_at": rfc3339(push.received_at),
        },
    }


def import_document(job: Import) -> dict[str, Any]:
    """Returns the document of an import."""
    state = "failed" if job.error else "done" if job.ended_at else "running"
    return {
        "id": job.id,
        "vhost": job.vhost,
        "owner": job.owner,
        "state": state,
        "total": job.total,
        "done": job.done,
        "added": job.added,
        "known": job.known,
        "refused_count": job.refused_count,
        "refused": [{"url": one.url, "reason": one.reason} for one in job.refused],
        "error": job.error,
        "started_at": rfc3339(job.started_at),
        "ended_at": rfc3339(job.ended_at),
    }


def read_request(body: Body) -> FeedRequest:
    """Returns the request for a new feed; raises `Problem` 400."""
    require_known(body, KEYS)
    return FeedRequest(
        first=_first(body),
        min_interval_s=body.integer("min_interval_s") if body.has("min_interval_s") else 0,
        selector=body.text("selector") if body.has("selector") else "",
        hub=body.text("hub") if body.has("hub") else "",
        visibility=_visibility(body),
    )


def changed_request(body: Body, request: FeedRequest) -> FeedRequest:
    """Returns the request with what the body has; null is the default. Raises `Problem` 400."""
    require_known(body, CHANGEABLE)
    found = read_request(body)
    given = {name: getattr(found, name) for name in CHANGEABLE[1:] if name in body}
    return replace(request, **given)


def require_known(body: Body, known: tuple[str, ...]) -> None:
    """Raises `Problem` 400: a misspelt key would have no effect."""
    unknown = next((key for key in body.everything() if key not in known), None)
    if unknown is not None:
        raise Problem(400, f"unknown key '{unknown[:80]}'; known: {', '.join(known)}")


def _visibility(body: Body) -> FeedVisibility:
    found = body.text("visibility") if body.has("visibility") else "public"
    for one in get_args(FeedVisibility):
        if found == one:
            return cast(FeedVisibility, found)
    wanted = ", ".join(get_args(FeedVisibility))
    raise Problem(400, f"'visibility' is '{found[:80]}', it has to be one of {wanted}")


def _first(body: Body) -> int:
    if not body.has("first") or body.everything()["first"] == "none":
        return 0
    return body.integer("first")
