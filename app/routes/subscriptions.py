"""`/subscriptions`: lists and imports subscriptions, for administrators (docs/rabbithub.md)."""

from __future__ import annotations

import time
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from ...core.auth import User
from ...hub.errors import NotSubscribed
from ...hub.requests import Resource
from ...hub.subscriptions.active import ActiveSubscription
from ..context import Context
from ..problems import Problem, method_not_allowed
from ..requests.parameters import refuse_unknown
from ..requests.paths import Target
from ..requests.properties import parse_query
from ..subscriptions import filter as listing
from ..subscriptions.batch import import_batch
from ..subscriptions.condition import summary
from ..subscriptions.document import failing
from .api.required_tags import ADMINISTRATOR

_KEY = "subscriptions"


async def subscriptions(context: Context, request: Request) -> Response:
    """Lists subscriptions (GET), or imports a list of them (POST)."""
    match request.method:
        case "GET" | "HEAD":
            await _administrator(context, request)
            return await listed(context.hub.subscription_store.all(), request)
        case "POST":
            return await import_batch(context, request, lambda: _administrator(context, request))
    raise method_not_allowed(request.method, "GET, HEAD, POST")


async def errors(context: Context, request: Request) -> Response:
    """Lists subscriptions whose deliveries fail, with their last error."""
    if request.method not in ("GET", "HEAD"):
        raise method_not_allowed(request.method, "GET, HEAD")
    await _administrator(context, request)
    return await list_failing(context.hub.subscription_store.all(), request)


async def subscription(context: Context, request: Request, target: Target) -> Response:
    """Returns the subscription of a resource with this callback and topic.

    Raises `Problem` 400 without one of them, `NotSubscribed` 404 if there is none.
    """
    if request.method not in ("GET", "HEAD"):
        raise method_not_allowed(request.method, "GET, HEAD")
    await _administrator(context, request)
    query = parse_query(request.scope["query_string"])
    refuse_unknown(query, ("hub.callback", "hub.topic"))
    try:
        callback, topic = query["hub.callback"], query["hub.topic"]
    except KeyError as missing:
        raise Problem(400, f"{missing.args[0]} is required") from None
    source = target.resource()
    found = matching(context.hub.subscription_store.all(), source, topic, callback)
    return await listing.answer(_KEY, found, None)


def matching(
    active_subscriptions: list[ActiveSubscription], source: Resource, topic: str, callback: str
) -> list[ActiveSubscription]:
    """Returns the subscriptions with this source, topic and callback.

    There are several if different topic URLs have the same key; `topic` may be such a URL. Raises
    `NotSubscribed` if there is none.
    """
    found = [
        active
        for active in active_subscriptions
        if (active.subscription.callback, active.subscription.source) == (callback, source)
        and topic in (active.subscription.topic, active.subscription.topic_url)
    ]
    if not found:
        reason = f"no subscription to {source} with this topic and callback"
        raise NotSubscribed(reason, field="hub.callback", value=callback)
    return found


async def listed(active_subscriptions: list[ActiveSubscription], request: Request) -> Response:
    """Lists subscriptions with the filters and page of the query. A page has `conditions`: how
    many there are of each condition, whichever is asked for."""
    query = parse_query(request.scope["query_string"])
    wanted, page = listing.read_filter(query, time.time()), listing.read_page(query)
    by, more = listing.read_order(query), None
    if page is not None:
        more = await summary(active_subscriptions, replace(wanted, condition=None).passes)
    return await listing.answer(
        _KEY, active_subscriptions, page, by=by, passes=wanted.passes, more=more
    )


async def list_failing(
    active_subscriptions: list[ActiveSubscription], request: Request
) -> Response:
    """Lists the subscriptions whose deliveries fail, with the filters and page of the query."""
    query = parse_query(request.scope["query_string"])
    condition, page = listing.read_filter(query, time.time()), listing.read_page(query)
    found = [
        active for active in active_subscriptions if active.error_count and condition.passes(active)
    ]
    return await listing.answer("errors", found, page, failing, listing.read_order(query))


async def _administrator(context: Context, request: Request) -> User:
    user = await context.user(request)
    ADMINISTRATOR.require(user)
    return user
