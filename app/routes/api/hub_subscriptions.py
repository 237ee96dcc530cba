"""Subscriptions, for administrators and owners; the paths of RabbitHub's management add-on.

Administrators see all subscriptions, other users their own. A subscription is named by its id, or
as in the add-on by `VHOST/TYPE/NAME/TOPIC/CALLBACK`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from starlette.responses import Response

from ....core.auth import User
from ....core.errors import not_found
from ....hub.requests import Resource
from ....hub.subscriptions.active import ActiveSubscription
from ....hub.subscriptions.expiry import REMOVED
from ...documents import deliveries, rabbithub, requests
from ...problems import Problem
from ...responses.facets import LISTING_NAMES
from ...subscriptions import filter as listing
from ...subscriptions.batch import import_batch
from ...subscriptions.document import described, running
from ...subscriptions.entry import KINDS
from ...subscriptions.environment import environment_of
from ...subscriptions.importing import Importer
from ..subscriptions import list_failing, listed, matching
from .attempt_json import tried
from .call import Call, answer
from .required_tags import ADMINISTRATOR, MANAGEMENT
from .route import GONE, SET, Operation, Routes

PAUSED = "paused by an operator"
SAMPLE = '{"test": true, "message": "Hello from Warren"}'
"""The body of a test for which none is given."""
ADD_ON_KEYS = {
    "queue-or-exchange": "resource_type",
    "q-or-x-name": "resource_name",
    "callback-uri": "callback",
    "lease-seconds": "lease_seconds",
}
"""The add-on's names of these keys when it creates a subscription."""


async def list_subscriptions(call: Call) -> Response:
    """Lists subscriptions, with filters and pages."""
    return await listed(_visible(call), call.request)


async def list_errors(call: Call) -> Response:
    """Lists subscriptions whose deliveries fail, with their last error."""
    return await list_failing(_visible(call), call.request)


async def list_consumers(call: Call) -> Response:
    """Lists the subscriptions whose queues are being consumed."""
    found = [active for active in _visible(call) if active.state.consumption is not None]
    return await listing.answer("consumers", found, None, running)


async def environment(call: Call) -> Response:
    """Returns the settings of the hub, without secrets."""
    return answer({"environment": environment_of(call.context.hub.settings)})


async def upload(call: Call) -> Response:
    """Imports a list of subscriptions, as `POST /subscriptions` does."""

    async def permitted() -> User:
        call.still_permitted()
        return call.user

    return await import_batch(call.context, call.request, permitted)


async def create(call: Call) -> Response:
    """Subscribes a callback once it has confirmed; keys as in a listing, or the add-on's."""
    body = (await call.body()).everything()
    entry = {ADD_ON_KEYS.get(key, key): value for key, value in body.items()}
    return await _subscribe(call, entry)


async def get(call: Call) -> Response:
    """Returns one subscription."""
    return answer(described(_by_id(call)))


async def end(call: Call) -> Response:
    """Ends a subscription without verification; its callback is notified."""
    await call.context.hub.subscription_store.end(_by_id(call), REMOVED)
    return Response(status_code=204)


async def pause(call: Call) -> Response:
    """Pauses a subscription: its messages accumulate and are not delivered."""
    active = _by_id(call)
    await call.context.hub.subscription_store.pause(active, PAUSED)
    return answer(described(active))


async def resume(call: Call) -> Response:
    """Resumes a paused subscription."""
    active = _by_id(call)
    await call.context.hub.subscription_store.resume(active)
    return answer(described(active))


async def renew(call: Call) -> Response:
    """Renews the lease of a subscription, from now on: `{"lease_seconds": 600}`."""
    body = await call.body()
    active = _by_id(call)
    await call.context.hub.subscription_store.renew(active, body.integer("lease_seconds"))
    return answer(described(active))


async def test(call: Call) -> Response:
    """Posts a test to the callback at once, as a delivery with the header `X-Hub-Test`, and returns
    the attempt with request and response: `{"body": "text", "content_type": "text/plain"}`, both
    optional. It changes nothing about the subscription, and is not repeated."""
    body = await call.body()
    content = body.text("body") if body.has("body") else SAMPLE
    media_type = body.text("content_type") if body.has("content_type") else "application/json"
    posts = call.context.hub.direct_posts
    try:
        raw = content.encode()
    except UnicodeEncodeError:
        raise Problem(400, "key 'body' contains an unpaired surrogate") from None
    return answer(tried(await posts.send_test(_by_id(call), raw, media_type)))


# -- by source, topic and callback


async def get_named(call: Call) -> Response:
    """Returns the subscription of a resource with this topic and callback."""
    return await listing.answer("subscriptions", _named(call), None)


async def put_named(call: Call) -> Response:
    """Subscribes once the callback has confirmed; with `"status": "inactive"` pauses.

    The body may be empty, or an object with keys as in a listing.
    """
    vhost, kind, name, topic, callback = call.names
    path = {"vhost": vhost, "resource_type": kind, "resource_name": name}
    body = (await call.body()).everything()
    return await _subscribe(call, {**body, **path, "topic": topic, "callback": callback})


async def end_named(call: Call) -> Response:
    """Ends the subscription of a resource with this topic and callback, which is notified."""
    for active in _named(call):
        await call.context.hub.subscription_store.end(active, REMOVED)
    return Response(status_code=204)


async def _subscribe(call: Call, raw: dict[str, Any]) -> Response:
    importer = Importer(call.context, call.user, call.context.base_url(call.request))
    entry = importer.read(raw)
    if entry.request.verify == ("async",):
        entry = replace(entry, request=replace(entry.request, verify=("sync",)))
    before = importer.find(entry.request)
    await importer.subscribe(entry)
    active = importer.find(entry.request)
    if before is not None or active is None:
        return Response(status_code=204)
    base_url = call.context.base_url(call.request)
    location = f"{base_url}/api/hub/subscriptions/{active.subscription.id}"
    return Response(status_code=201, headers={"Location": location})


def _visible(call: Call) -> list[ActiveSubscription]:
    active_subscriptions = call.context.hub.subscription_store.all()
    return (
        active_subscriptions
        if ADMINISTRATOR.has(call.user)
        else [one for one in active_subscriptions if _owns(call, one)]
    )


def _owns(call: Call, active: ActiveSubscription) -> bool:
    return active.subscription.owner == call.user.name


def _by_id(call: Call) -> ActiveSubscription:
    """Returns the subscription in the path; raises `ChannelError` 404, for another user's
    subscription too."""
    active = call.context.hub.subscription_store.by_id(*call.names)
    if active is None or not (ADMINISTRATOR.has(call.user) or _owns(call, active)):
        raise not_found(f"no subscription '{call.names[0]}'")
    return active


def _named(call: Call) -> list[ActiveSubscription]:
    vhost, kind, name, topic, callback = call.names
    if kind not in KINDS:
        raise Problem(404, f"'{kind}' is neither exchange nor queue")
    return matching(_visible(call), Resource(vhost, KINDS[kind], name), topic, callback)


_ONE = "/hub/subscriptions/{vhost}/{type}/{name}/{topic}/{callback}"
ROUTES: Routes = {
    "/hub/subscriptions": {
        "GET": Operation(
            list_subscriptions, MANAGEMENT, {200: rabbithub.Subscriptions}, query=LISTING_NAMES
        ),
        "POST": Operation(create, MANAGEMENT, SET, requests.Subscription),
    },
    "/hub/subscriptions/batch": {
        "POST": Operation(upload, ADMINISTRATOR, {202: rabbithub.Imported}, requests.Subscriptions)
    },
    "/hub/subscriptions/{id}": {
        "GET": Operation(get, MANAGEMENT, {200: rabbithub.Subscription}),
        "DELETE": Operation(end, MANAGEMENT, GONE),
    },
    "/hub/subscriptions/{id}/pause": {
        "POST": Operation(pause, MANAGEMENT, {200: rabbithub.Subscription})
    },
    "/hub/subscriptions/{id}/resume": {
        "POST": Operation(resume, MANAGEMENT, {200: rabbithub.Subscription})
    },
    "/hub/subscriptions/{id}/renew": {
        "POST": Operation(renew, MANAGEMENT, {200: rabbithub.Subscription}, requests.Lease)
    },
    "/hub/subscriptions/{id}/test": {
        "POST": Operation(test, MANAGEMENT, {200: deliveries.TryWithRequest}, requests.Test)
    },
    _ONE: {
        "GET": Operation(get_named, MANAGEMENT, {200: rabbithub.Subscriptions}),
        "PUT": Operation(put_named, MANAGEMENT, SET, requests.SubscriptionChange),
        "DELETE": Operation(end_named, MANAGEMENT, GONE),
    },
    "/hub/consumers": {"GET": Operation(list_consumers, MANAGEMENT, {200: rabbithub.Consumers})},
    "/hub/errors": {
        "GET": Operation(list_errors, MANAGEMENT, {200: rabbithub.FailingOnes}, query=LISTING_NAMES)
    },
    "/hub/environment": {
        "GET": Operation(environment, ADMINISTRATOR, {200: rabbithub.Environment})
    },
}
