"""Registered feeds.

Users see the feeds of virtual hosts that they may enter. To register, change, poll or remove one
they need the permission to write to the exchange `hub.feeds` there, and topic permission for the
feed's name: what a feed says is published for them. A private feed is its owner's and the
administrators' alone; others see that it is there, with the hosts of its URLs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from starlette.responses import Response

from ....core.auth import TopicRights
from ....core.auth.authorization import at_topics
from ....core.errors import access_refused
from ....hub.feeds.errors import NoSuchFeed, NotYourFeed
from ....hub.feeds.feed import EXCHANGE, Feed
from ....hub.feeds.health import Health, health_of, statistics
from ....hub.feeds.imports import NoSuchImport
from ....hub.feeds.privacy import may_see_urls
from ....hub.feeds.registration import MAX_FIRST, FeedRegistration
from ...documents import feeds, requests
from ...requests.body import read_body
from ...requests.properties import parse_query
from ...subscriptions.filter import PAGING, ListingPage, paging_of, read_page
from .call import NO_STORE, Call, answer
from .document_links import document_links
from .feed_json import ORDERS, changed_request, described, import_document, read_request
from .filters import Filters
from .required_tags import ADMINISTRATOR, MANAGEMENT, sees
from .route import GONE, Operation, Routes

FOUND_BY = ("search", "state", "vhost")
QUERY = (*PAGING, "sort", "sort_reverse", *FOUND_BY)
PAGE_SIZE = 100
IMPORT_QUERY = ("vhost", "first")
MAX_OPML_BYTES = 16 * 1024 * 1024
"""20,000 outlines with long URLs and texts."""
OPML = "text/x-opml"


async def _list(call: Call) -> Response:
    """Lists feeds, a page of 100 if nothing else is asked for, with statistics about all that are
    found. `search` is part of name, title or URL; `state` is new, ok, failing, dead, paused or
    gone. `sort` is a member (such as `next_poll_at`; `name` if absent), and `sort_reverse=true`
    begins with the largest."""
    query = parse_query(call.request.scope["query_string"])
    filters = Filters(query, QUERY)
    page = read_page(query) or ListingPage(1, PAGE_SIZE)
    order = ORDERS[filters.word("sort", tuple(ORDERS)) or "name"]
    is_reversed = filters.word("sort_reverse", ("true", "false")) == "true"
    now_s = call.broker.clock.wall_s()
    find = _finder(call, filters, now_s)

    def examined() -> tuple[list[Feed], dict[str, object]]:
        found = sorted(
            find(), key=lambda feed: (order(feed, now_s), feed.name), reverse=is_reversed
        )
        return found, statistics(found, now_s)

    # In a thread: of 20,000 feeds it takes some 100 ms, and feeds are immutable.
    found, figures = await asyncio.to_thread(examined)
    first = (page.number - 1) * page.size
    items = [_document(call, feed, now_s) for feed in found[first : first + page.size]]
    counts = {"item_count": len(items), "total_count": len(call.context.hub.feeds.all())}
    return answer({"items": items, "statistics": figures, **paging_of(page, len(found)), **counts})


async def _register(call: Call) -> Response:
    """Registers a feed, or the one that a page names. The body needs `url`; it may have `name`,
    `vhost`, `first` (of the entries found now, this many are published; none if absent),
    `min_interval_s`, `selector` (for pages and data that are no feeds), `hub` and `visibility`
    (`public`, or `private`: only the owner reads the documents).

    Answers 201 after the first poll, and 300 with candidates if a page names several feeds.
    """
    body = await call.body()
    request = read_request(body)
    vhost = body.text("vhost") if body.has("vhost") else "/"
    name = body.text("name") if body.has("name") else ""
    call.own_vhost(vhost)
    _require_write(call, vhost, name)
    wanted = FeedRegistration(body.text("url"), name, vhost, call.user.name, request)
    return _answer(call, await call.context.hub.feeds.register(wanted), 201)


async def _get(call: Call) -> Response:
    """Returns a feed with its health."""
    return _answer(call, _find(call))


async def _patch(call: Call) -> Response:
    """Changes a feed. The body has any of `url`, `min_interval_s`, `selector`, `hub` and
    `visibility`; null is the default."""
    body = await call.body()
    feed = _writable(call)
    request = changed_request(body, feed.request)
    url = body.text("url") if body.has("url") else feed.url
    return _answer(call, await call.context.hub.feeds.change(feed.name, url, request))


async def _delete(call: Call) -> Response:
    """Removes a feed with its stored entries; messages that are in queues stay there."""
    await call.context.hub.feeds.remove(_writable(call).name)
    return Response(status_code=204)


async def _poll(call: Call) -> Response:
    """Polls a feed now; answers when its entries are published."""
    return _answer(call, await call.context.hub.feeds.poll(_writable(call).name))


async def _pause(call: Call) -> Response:
    """Stops polling a feed."""
    return _answer(call, await call.context.hub.feeds.pause(_writable(call).name))


async def _resume(call: Call) -> Response:
    """Polls a paused feed again, or one that was gone."""
    return _answer(call, await call.context.hub.feeds.resume(_writable(call).name))


async def _import(call: Call) -> Response:
    """Registers the feeds of an OPML document, the body. `?vhost=` and `?first=` hold for each.
    Answers 202 with the progress, which is at `Location` from then on."""
    query = parse_query(call.request.scope["query_string"])
    filters = Filters(query, IMPORT_QUERY)
    vhost = filters.text("vhost") or "/"
    first = filters.number("first", 0, MAX_FIRST) or 0
    call.own_vhost(vhost)
    _require_write(call, vhost, "")
    unfinished = call.context.unfinished
    body = await read_body(call.request.receive, MAX_OPML_BYTES, unfinished, call.user.name)
    call.still_permitted()
    job = await call.context.hub.feeds.import_opml(body, vhost, call.user.name, first)
    response = answer(import_document(job))
    response.status_code = 202
    base_url = call.context.base_url(call.request)
    response.headers["Location"] = f"{base_url}/api/hub/feeds/import/{job.id}"
    return response


async def _imported(call: Call) -> Response:
    """Returns how far an import is: the user's own, any for administrators."""
    job = call.context.hub.feeds.imported(call.names[0])
    if job.owner != call.user.name and not ADMINISTRATOR.has(call.user):
        raise NoSuchImport(f"no import '{job.id}'", field="id", value=job.id)
    return answer(import_document(job))


async def _export(call: Call) -> Response:
    """Returns the feeds as OPML, without private feeds of other users: in the form of the documents
    that the user has imported, for administrators also of those of others.

    `search`, `state` and `vhost` select feeds. Without `search` and `state`, the other imported
    outlines are included too: empty folders, links, and feeds that were refused.
    """
    query = parse_query(call.request.scope["query_string"])
    filters = Filters(query, FOUND_BY)
    find = _finder(call, filters, call.broker.clock.wall_s())
    found = [feed for feed in await asyncio.to_thread(find) if _may_see_urls(call, feed)]
    hosts, is_administrator = _hosts(call, filters), ADMINISTRATOR.has(call.user)
    body = await call.context.hub.feeds.lists.export(
        found,
        call.user.name,
        lambda key: key.vhost in hosts and (is_administrator or key.owner == call.user.name),
        is_whole=not query.keys() & {"search", "state"},
    )
    return Response(body, media_type=OPML, headers=NO_STORE)


def _answer(call: Call, feed: Feed, status: int = 200) -> Response:
    feed = call.context.hub.feeds.current(feed)
    response = answer(_document(call, feed, call.broker.clock.wall_s()))
    response.status_code = status
    if status == 201:
        response.headers["Location"] = (
            f"{call.context.base_url(call.request)}/api/hub/feeds/{feed.name}"
        )
    return response


def _document(call: Call, feed: Feed, now_s: float) -> dict[str, Any]:
    found = described(feed, now_s, shows_urls=_may_see_urls(call, feed))
    return {**found, "documents": document_links(call, feed.vhost, feed.name)}


def _may_see_urls(call: Call, feed: Feed) -> bool:
    return may_see_urls(feed, call.user.name, is_administrator=ADMINISTRATOR.has(call.user))


def _finder(call: Call, filters: Filters, now_s: float) -> Callable[[], list[Feed]]:
    """Returns what finds the feeds as they are now, in any thread. Raises `Problem` 400."""
    state = filters.word("state", tuple(Health))
    search = (filters.text("search") or "").casefold()
    feeds, current = list(call.context.hub.feeds.all()), call.context.hub.feeds.current
    hosts = _hosts(call, filters)

    def is_found(feed: Feed) -> bool:
        url = feed.url if _may_see_urls(call, feed) else ""
        return search in f"{feed.name}\n{feed.status.title}\n{url}".casefold()

    def is_wanted(feed: Feed) -> bool:
        return (
            feed.vhost in hosts
            and (state is None or health_of(feed, now_s) == state)
            and (not search or is_found(feed))
        )

    return lambda: [current(feed) for feed in feeds if is_wanted(feed)]


def _hosts(call: Call, filters: Filters) -> set[str]:
    """Returns the virtual hosts that are asked about, among those that the user sees."""
    vhost = filters.text("vhost")
    return {name for name in call.broker.vhosts if vhost in (None, name) and sees(call.user, name)}


def _find(call: Call) -> Feed:
    """Returns the feed in the path; raises `NoSuchFeed`, for a feed that the user may not see
    too."""
    (name,) = call.names
    feed = call.context.hub.feeds.get(name)
    if feed is None or not sees(call.user, feed.vhost):
        raise NoSuchFeed(name)
    return feed


def _writable(call: Call) -> Feed:
    """Returns the feed in the path, which the user may change; raises `NoSuchFeed`, `ChannelError`
    403, and `NotYourFeed`."""
    feed = _find(call)
    _require_write(call, feed.vhost, feed.name)
    if not _may_see_urls(call, feed):
        raise NotYourFeed(feed.name)
    return feed


def _require_write(call: Call, vhost: str, name: str) -> None:
    """Raises `ChannelError` 403; without a name, for a user whose names are restricted too."""
    call.user.require(vhost, "write", "exchange", EXCHANGE)
    topics = _topics(call, vhost)
    if topics is not None:
        if not name:
            raise access_refused(
                f"user '{call.user.name}' has topic permissions for exchange '{EXCHANGE}' in vhost "
                f"'{vhost}': give the feed a 'name' that they permit"
            )
        topics.require("write", name)


def _topics(call: Call, vhost: str) -> TopicRights | None:
    return at_topics(call.user, vhost, EXCHANGE, "topic", {})


ROUTES: Routes = {
    "/hub/feeds": {
        "GET": Operation(_list, MANAGEMENT, {200: feeds.FeedPage}, query=QUERY),
        "POST": Operation(_register, MANAGEMENT, {201: feeds.Feed}, requests.Feed),
    },
    "/hub/feeds.opml": {
        "GET": Operation(_export, MANAGEMENT, {200: (OPML,)}, query=("search", "state", "vhost"))
    },
    "/hub/feeds/import": {
        "POST": Operation(_import, MANAGEMENT, {202: feeds.FeedImport}, ("application/xml",))
    },
    "/hub/feeds/import/{id}": {"GET": Operation(_imported, MANAGEMENT, {200: feeds.FeedImport})},
    "/hub/feeds/{name}": {
        "GET": Operation(_get, MANAGEMENT, {200: feeds.Feed}),
        "PATCH": Operation(_patch, MANAGEMENT, {200: feeds.Feed}, requests.FeedChange),
        "DELETE": Operation(_delete, MANAGEMENT, GONE),
    },
    "/hub/feeds/{name}/poll": {"POST": Operation(_poll, MANAGEMENT, {200: feeds.Feed})},
    "/hub/feeds/{name}/pause": {"POST": Operation(_pause, MANAGEMENT, {200: feeds.Feed})},
    "/hub/feeds/{name}/resume": {"POST": Operation(_resume, MANAGEMENT, {200: feeds.Feed})},
}
