"""`/feeds/NAME.atom`, `.rss` and `.json`: the documents of feeds and outputs (docs/feeds.md).

Each is a topic of this hub: subscribed to at `/hub` with its URL, it is pushed when it changes.
"""

from __future__ import annotations

import time
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from ...core.auth import ADMINISTRATOR
from ...hub.formats.media_types import MEDIA_TYPES
from ...hub.outputs.document import RenderedDocument
from ...hub.outputs.readers import DocumentReader
from ...hub.service import Hub
from ...hub.topics.document_key import DocumentPlace
from ...hub.workers.pool import WorkFailed, WorkRefused
from ..access.authentication import authorization_of
from ..context import Context
from ..problems import Problem, method_not_allowed, unauthenticated
from ..requests.parameters import unknown_parameter
from ..requests.properties import parse_query

QUERY: Final = ("before", "token")
MAX_AGE_S: Final = 60
"""How long caches on the way may keep a document; subscribers are pushed the new one at once."""
POLICY: Final = "default-src 'none'; sandbox"
"""Browsers show the documents of others, and run no script in them: it would be this origin's."""
SETTLED_S: Final = 1.0
"""A Last-Modified has whole seconds: within this time a document may change again."""
_BEARER: Final = "bearer "
_ITEM_MAX: Final = 2**63 - 1


async def feed_document(context: Context, request: Request, document: DocumentPlace) -> Response:
    """Returns a feed or an output in one of the formats: the newest items, or with `before` those
    before an item. Outputs that are not public need `token`, or `Authorization: Bearer`."""
    if request.method not in ("GET", "HEAD"):
        raise method_not_allowed(request.method, "GET, HEAD")
    query = _query(request)
    hub = context.hub
    token = await _token(context, request, document, query)
    before = _before(query)
    is_there = hub.publications.has(document.place)
    found = hub.documents.cached(document) if before is None and is_there else None
    if found is None:
        found = await _rendered(context, document, before)
    base_url = context.base_url(request)
    headers = _headers(hub.readers.is_public(document.place), document, found, base_url, token)
    known = request.headers
    if found.is_known(known.get("if-none-match"), known.get("if-modified-since")):
        return Response(status_code=304, headers=headers)
    return Response(found.body(base_url, token), headers=headers, media_type=None)


async def _rendered(
    context: Context, document: DocumentPlace, before: int | None
) -> RenderedDocument:
    """Returns the document; raises `Problem` 503 for one that exceeds the limits of a worker
    process."""
    try:
        return await context.hub.documents.get(document, before)
    except (WorkFailed, WorkRefused) as error:
        raise Problem(503, f"the document can't be written: {error}") from error


async def _token(
    context: Context, request: Request, document: DocumentPlace, query: dict[str, str]
) -> str:
    """Returns the token that a reader needs in URLs, "" where the query has none or none is needed.

    Raises `Problem` 401 for who may not read the document. Passwords are checked only where a token
    is not enough.
    """
    may_read = context.hub.readers.may_read
    if may_read(document.place, DocumentReader()):
        return ""
    authorization = (authorization_of(request.scope) or b"").decode("latin-1")
    is_bearer = authorization[: len(_BEARER)].lower() == _BEARER
    token = authorization[len(_BEARER) :].strip() if is_bearer else query.get("token", "")
    if may_read(document.place, DocumentReader(token)):
        return "" if is_bearer else token
    if authorization and not is_bearer:
        user = await context.user(request)
        if may_read(document.place, DocumentReader("", user.name, ADMINISTRATOR in user.tags)):
            return ""
    raise not_a_reader(context.hub, document)


def not_a_reader(hub: Hub, document: DocumentPlace) -> Problem:
    """Returns the 401 for who may not read a document."""
    if hub.readers.is_feed(document.place):
        return unauthenticated(
            f"feed '{document.place.name}' is private: log in as its owner, or have an output made "
            "of it, with a token"
        )
    detail = (
        "a token is needed: ?token=TOKEN, or Authorization: Bearer TOKEN; the owner of the output "
        f"makes one with POST /api/hub/outputs/{document.place.name}/tokens"
    )
    return Problem(401, detail, headers={"WWW-Authenticate": 'Bearer realm="warren"'})


def _query(request: Request) -> dict[str, str]:
    raw = request.scope["query_string"]
    if not raw:
        return {}
    query = parse_query(raw)
    for name in query:
        if name not in QUERY:
            raise unknown_parameter(name, QUERY)
    return query


def _before(query: dict[str, str]) -> int | None:
    text = query.get("before")
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 19 and int(text) <= _ITEM_MAX):
        raise Problem(400, f"before is '{text[:80]}', not the number of an item (0 to {_ITEM_MAX})")
    return int(text)


def _headers(
    is_public: bool,
    document: DocumentPlace,
    found: RenderedDocument,
    base_url: str,
    token: str,
) -> dict[str, str]:
    path = base_url + document.path
    token = token and f"token={token}"
    links = [f'<{base_url}/hub>; rel="hub"', f'<{_with(path, token)}>; rel="self"']
    if found.next_before is not None:
        older = _with(path, f"before={found.next_before}", token)
        links.append(f'<{older}>; rel="next"')
    headers = {
        "Content-Type": MEDIA_TYPES[document.format],
        "ETag": found.etag,
        "Cache-Control": f"{'public' if is_public else 'private'}, max-age={MAX_AGE_S}",
        "Link": ", ".join(links),
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": POLICY,
    }
    if not is_public:
        headers["Vary"] = "Authorization"
    if time.time() - found.changed_at > SETTLED_S:
        headers["Last-Modified"] = found.last_modified
    return headers


def _with(url: str, *parameters: str) -> str:
    query = "&".join(filter(None, parameters))
    return f"{url}?{query}" if query else url
