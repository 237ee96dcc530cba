"""`/hub`: WebSub, and PubSubHubbub 0.3 and 0.4 (docs/websub.md).

Requests are forms; errors are one line of plain text (WebSub 5.1.2), unless the request accepts
JSON or HTML. A subscription to a topic of this hub needs the same permissions as at `/subscribe`;
external topics need none.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Scope

from ...core.auth import ADMINISTRATOR, User, network
from ...hub.errors import BadRequest, SourceMissing
from ...hub.guard.addresses import parse_address
from ...hub.guard.domains import network_of
from ...hub.outputs.readers import DocumentReader
from ...hub.requests import Mode, SubscribeRequest
from ...hub.subscriptions.options import PARAMETERS
from ...hub.subscriptions.websub import WebSubTopic, key_of, read_topic
from ...hub.topics.document_key import DocumentPlace
from ..access.authentication import authorization_of
from ..access.authorization import require_vhost
from ..access.local_requests import peer_of
from ..context import Context
from ..problems import MEDIA_TYPE, Problem, method_not_allowed, problem_of, unauthenticated
from ..requests.body import read_body
from ..requests.forms import FORM, Form, first, first_values, parse_form
from ..requests.parameters import refuse_misspelt
from ..responses.error_pages import answer_problem
from ..responses.facets import HUB_NAMES
from ..responses.negotiation import choose
from ..responses.success_bodies import subscribed
from .feeds import not_a_reader
from .ping import NO_FOREIGN_TOPICS, URL_FIELDS, publish
from .subscribe import longest_lease_s, require_scope, require_source

MAX_BODY_BYTES = 1024 * 1024
"""Publishers may send content with a ping."""
MAX_INCOMPLETE_BYTES = 16 * 1024 * 1024
"""Limit of incomplete forms per address."""
MAX_INLINE_PARSE_BYTES = 32 * 1024
"""Larger forms are parsed in a thread: percent decoding takes 0.15 us per character."""
UNKNOWN = "unknown"
"""A client without an address."""
METHODS = "GET, HEAD, POST"
_KNOWN = HUB_NAMES | {*URL_FIELDS, "hub.verify"}
"""`hub.verify` is a parameter of PubSubHubbub 0.3 without effect here."""
TEXT = """\
This is a WebSub hub (https://www.w3.org/TR/websub/). POST a form to it:

hub.mode=subscribe    hub.topic=URL  hub.callback=URL  hub.lease_seconds=N  hub.secret=TEXT
hub.mode=unsubscribe  hub.topic=URL  hub.callback=URL
hub.mode=publish      hub.url=URL
"""
TEXT_TYPE = "text/plain"
_ERROR_TYPES = (TEXT_TYPE, MEDIA_TYPE, "application/json", "text/html")
_HTML = f"<!DOCTYPE html><title>WebSub hub</title><pre>{TEXT}</pre>"


async def hub(context: Context, request: Request) -> Response:
    """Handles a request. Raises `ClientDisconnect` only; other errors become responses."""
    try:
        return await _answer(context, request)
    except ClientDisconnect:
        raise
    except Exception as error:
        return _error_response(problem_of(error), request)


def _error_response(problem: Problem, request: Request) -> Response:
    media_type = choose(request.headers.get("accept", ""), _ERROR_TYPES)
    if media_type not in (None, TEXT_TYPE):
        return answer_problem(problem, request.scope)
    return plain(problem)


def plain(problem: Problem) -> Response:
    """Returns the reason in one line of text, with the given value and the accepted ones."""
    facts = {"given": problem.members.get("value"), "right": problem.members.get("limit")}
    added = "; ".join(f"{name}: {value}" for name, value in facts.items() if value is not None)
    line = f"{problem.detail} ({added})" if added else problem.detail
    text = " ".join(line.split()) + "\n"
    return Response(text, problem.status, problem.headers, media_type="text/plain")


async def _answer(context: Context, request: Request) -> Response:
    if request.method in ("GET", "HEAD"):
        return _describe(request)
    if request.method != "POST":
        raise method_not_allowed(request.method, METHODS)
    moved_to = context.hub.settings.hub_moved_to
    if moved_to:
        return Response(status_code=308, headers={"Location": moved_to})
    form = await _form(context, request)
    refuse_misspelt(form, _KNOWN)
    match first(form, "hub.mode"):
        case "subscribe" | "unsubscribe" as mode:
            return await _subscribe(context, request, form, mode)
        case "publish":
            return await publish(context, request, form)
        case mode:
            reason = "is unknown" if mode else "is required"
            limit = "subscribe, unsubscribe or publish"
            raise BadRequest(reason, field="hub.mode", value=mode, limit=limit)


def _describe(request: Request) -> Response:
    kind = choose(request.headers.get("accept", ""), ["text/plain", "text/html"])
    return Response(_HTML if kind == "text/html" else TEXT, media_type=kind or "text/plain")


async def _form(context: Context, request: Request) -> Form:
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.strip().lower() != "identity":
        raise Problem(415, f"content encoding '{encoding[:80]}' is not accepted here")
    media_type = request.headers.get("content-type", FORM).partition(";")[0].strip().lower()
    if media_type != FORM:
        raise Problem(415, f"content type '{media_type[:80]}' is not {FORM}")
    # Not authenticated yet, so the body counts for the client's address.
    owner = f"from {network(peer_of(request.scope))}"
    body = await read_body(
        request.receive, MAX_BODY_BYTES, context.unfinished, owner, MAX_INCOMPLETE_BYTES
    )
    if len(body) > MAX_INLINE_PARSE_BYTES:
        return await asyncio.to_thread(parse_form, body)
    return parse_form(body)


async def _subscribe(context: Context, request: Request, form: Form, mode: Mode) -> Response:
    base_url, given = context.base_url(request), first_values(form)
    bases = (*context.hub.settings.base_urls, base_url)
    topic = read_topic(given.get("hub.topic"), bases, given.get("hub.content"))
    known = await _user(context, request)
    if known is not None:
        require_scope(known, topic.source)
    if not topic.is_own:
        _require_foreign_topics(context, known, mode)
    is_permitted = not topic.is_own or topic.document is not None
    user = known if is_permitted or known is not None else _hub_user(context)
    if topic.document is not None and mode == "subscribe":
        await _require_document(context, topic, topic.document, known)
    subscribe_request = SubscribeRequest(
        source=topic.source,
        callback=given.get("hub.callback"),
        topic=topic.key,
        user="" if user is None else user.name,
        base_url=base_url if known is not None else context.verified_url(request),
        verify_token=given.get("hub.verify_token"),
        lease_seconds=given.get("hub.lease_seconds"),
        secret=given.get("hub.secret"),
        topic_url=topic.url,
        given={name: given[name] for name in PARAMETERS if name in given},
        longest_lease_s=None if known is None else longest_lease_s(known),
        client="" if known is not None else client_of(request.scope),
        # Requests without credentials never have the rights of an administrator.
        is_administrator=known is not None and ADMINISTRATOR in known.tags,
    )
    if not is_permitted and user is not None:
        require_vhost(user, topic.source.vhost, context.vhosts)
    if mode == "unsubscribe":
        # The binding key does not matter here, and the source may have been deleted.
        subscribe_request = replace(subscribe_request, topic=topic.key or "")
        result = await context.hub.subscriptions.unsubscribe(subscribe_request)
    else:
        if not is_permitted and user is not None:
            subscribe_request = await _permitted(context, user, topic, subscribe_request)
        result = await context.hub.subscriptions.subscribe(subscribe_request)
    # Pending also for clients of PubSubHubbub 0.3 that ask for hub.verify=sync (WebSub 5.1.2).
    return subscribed(mode, subscribe_request, replace(result, verified=False), "")


async def _permitted(
    context: Context, user: User, topic: WebSubTopic, request: SubscribeRequest
) -> SubscribeRequest:
    """Returns the request with the binding key of the topic URL.

    Raises `ChannelError` 403, `SourceMissing`.
    """
    await require_source(context, user, request)
    if topic.key is None:
        request = replace(request, topic=await key_of(context.engine, topic))
        await require_source(context, user, request)
    return request


async def _require_document(
    context: Context, topic: WebSubTopic, document: DocumentPlace, user: User | None
) -> None:
    """Raises `Problem` 401 for who may not read a document, `SourceMissing` if there is none."""
    hub = context.hub
    if user is None and not topic.token and not hub.settings.hub_anonymous:
        raise unauthenticated(
            "a document of this hub needs credentials (HTTP Basic), its token in the URL, or the "
            "setting hub_anonymous"
        )
    if not hub.readers.may_read(
        document.place, DocumentReader(topic.token, user.name if user else "")
    ):
        raise not_a_reader(hub, document)
    if not hub.publications.has(document.place):
        reason = "is a document that this hub does not have"
        raise SourceMissing(reason, field="hub.topic", value=topic.url.partition("?")[0])
    await hub.topics.declare()


def _require_foreign_topics(context: Context, user: User | None, mode: Mode) -> None:
    """Raises `Problem` if external topics are off; a user may always unsubscribe."""
    settings = context.hub.settings
    if user is None and not (settings.hub_foreign_topics and settings.hub_anonymous):
        raise unauthenticated(
            "an external topic needs credentials (HTTP Basic) and the setting hub_foreign_topics; "
            "without credentials it needs hub_anonymous too"
        )
    if not settings.hub_foreign_topics and mode == "subscribe":
        raise Problem(403, NO_FOREIGN_TOPICS)


def client_of(scope: Scope) -> str:
    """Returns the network of a client without credentials."""
    try:
        return network_of(parse_address(peer_of(scope)))
    except ValueError:
        return UNKNOWN


async def _user(context: Context, request: Request) -> User | None:
    """Returns the user, or None without credentials. Raises `Problem` 401 for wrong ones."""
    if authorization_of(request.scope) is None:
        return None
    return await context.user(request, takes_tokens=True)


def _hub_user(context: Context) -> User:
    """Returns the user of requests without credentials. Raises `Problem` 401 if there is none."""
    name = context.hub.settings.hub_user
    if not name:
        raise unauthenticated(
            "a topic of this hub needs credentials: HTTP Basic, or the setting hub_user, "
            "which names the user of requests without credentials"
        )
    user = context.broker.users.get(name)
    if user is None:
        raise unauthenticated("credentials are needed: the user of setting hub_user does not exist")
    return user
