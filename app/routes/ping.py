"""`hub.mode=publish` at `/hub`: notifies of changed topics, optionally with their content."""

from __future__ import annotations

import hmac
import re

from starlette.requests import Request
from starlette.responses import Response

from ...hub.delivery.signature import METHODS, sign
from ...hub.errors import BadRequest
from ...hub.guard.own import is_own
from ...hub.subscriptions.websub import check_url, normal_url
from ...hub.topics.names import CONTENT, VHOST
from ..access.authentication import authorization_of
from ..context import Context
from ..problems import Problem, unauthenticated
from ..requests.forms import Form, first
from ..requests.properties import CONTROL

URL_FIELDS = ("hub.url", "hub.url[]", "hub.topic", "hub.topic[]")
"""PubSubHubbub 0.3 has the first, Superfeedr the second, websub.rocks sends the third."""
MAX_URLS = 1_000
MAX_AMBIGUOUS = 32
"""Parts of a list in which URLs with a comma before `http://` are looked for."""
NO_FOREIGN_TOPICS = "external topics are not accepted: the setting hub_foreign_topics is off"
_COMMA = re.compile(r",\s*(?=https?://)", re.IGNORECASE)  # a URL may have commas of its own


async def publish(context: Context, request: Request, form: Form) -> Response:
    """Answers 204 (PubSubHubbub 0.3) once the ping is stored, with or without subscribers."""
    bases = (*context.hub.settings.base_urls, context.base_url(request))
    # Topics of this hub are not fetched: their content is published directly.
    urls = [normal_url(url) for url in await _urls(context, form) if not is_own(url, bases)]
    content = first(form, "hub.content")
    if content is None:
        if urls and not context.hub.settings.hub_foreign_topics:
            raise Problem(403, NO_FOREIGN_TOPICS)
        await context.hub.topics.ping(urls)
        return Response(status_code=204)
    await _require_publisher(context, request, form, content.encode())
    if len(urls) != 1:
        reason = f"is given with {len(urls)} URLs of external topics"
        raise BadRequest(reason, field="hub.content", limit="one URL")
    body = content.encode()
    kind = first(form, "hub.content_type") or content_type_of(body)
    if not CONTROL.isdisjoint(kind):
        raise BadRequest("must not contain control characters", field="hub.content_type")
    await context.hub.topics.publish_content(urls[0], body, kind)
    return Response(status_code=204)


async def _urls(context: Context, form: Form) -> list[str]:
    values = [value for field in URL_FIELDS for value in form.get(field, ())]
    urls = [url.strip() for value in values for url in await _split(context, value)]
    if not urls:
        raise BadRequest("is required", field="hub.url")
    if len(urls) > MAX_URLS:
        reason, limit = f"is given {len(urls)} times", f"{MAX_URLS} URLs"
        raise BadRequest(reason, field="hub.url", limit=limit)
    return [check_url("hub.url", url) for url in dict.fromkeys(urls)]


async def _split(context: Context, value: str) -> list[str]:
    """Returns the URLs of a list. Commas inside a topic or feed that is known here separate none;
    the longest known one counts."""
    commas = list(_COMMA.finditer(value))
    starts = [0, *(comma.end() for comma in commas)]
    ends = [*(comma.start() for comma in commas), len(value)]
    urls, first = [], 0
    while first < len(starts):
        start, last = starts[first], first
        if len(starts) <= MAX_AMBIGUOUS:
            longer = [
                n
                for n in range(first + 1, len(ends))
                if await _is_known(context, value[start : ends[n]])
            ]
            last = max(longer, default=first)
        urls.append(value[start : ends[last]])
        first = last + 1
    return urls


async def _is_known(context: Context, url: str) -> bool:
    try:
        url = check_url("hub.url", url.strip())
    except BadRequest:
        return False
    return context.hub.feeds.has_url(url) or await context.hub.topics.subscribers(url) > 0


async def _require_publisher(
    context: Context, request: Request, form: Form, content: bytes
) -> None:
    """Authenticates the publisher, since the content is not fetched from the topic.

    Raises `Problem` 401 or 403, `ChannelError` 403.
    """
    secret, signature = context.hub.settings.hub_publisher_secret, first(form, "hub.signature")
    if authorization_of(request.scope) is not None:
        user = await context.user_in(request, VHOST, takes_tokens=True)
        user.require(VHOST, "write", "exchange", CONTENT)
    elif signature is None or not secret:
        raise unauthenticated(
            "hub.content needs credentials with write access to exchange "
            f"'{CONTENT}', or hub.signature and the setting hub_publisher_secret"
        )
    elif not is_signed(signature, secret, content):
        raise Problem(403, "hub.signature is not the HMAC of hub.content with the secret")


def is_signed(signature: str, secret: str, content: bytes) -> bool:
    """Returns whether the signature is `method=hex(HMAC(secret, content))`; without a method it is
    SHA-1 (Superfeedr)."""
    method, equals, _ = signature.partition("=")
    expected = sign(method if equals and method in METHODS else "sha1", secret, content)
    given = signature if equals else f"sha1={signature}"
    return hmac.compare_digest(given.encode(), expected.encode())


def content_type_of(body: bytes) -> str:
    """Guesses the type of content without one, as Superfeedr sends it: feeds are XML or JSON."""
    begin = body.lstrip()[:1]
    if begin == b"<":
        return "application/xml"
    return "application/json" if begin in (b"{", b"[") else "text/plain"
