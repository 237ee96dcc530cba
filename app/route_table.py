"""The routes of the HTTP interface, with starlette's routing.

Routes match the path as it was sent: segments are split before they are decoded, so `%2F` is a
slash in a name, and a path has one spelling. Only below `/api` is every segment decoded first.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from ..hub.engine.errors import NotOnThisEngine
from ..hub.topics.document_key import DocumentPlace, read_path
from ..hub.upstream.upstream import CALLBACK_PATH
from .context import Context
from .requests.paths import CAPABILITY_PATH, FACETS, FOLDERS, Target, decode, parse
from .responses.error_pages import PAGES
from .routes import plain
from .routes.api.router import Api
from .routes.browser_files import MODULES, UI, ApiDocs, Demos, OwnFiles, PublicFiles
from .routes.capability import capability
from .routes.endpoint import endpoint
from .routes.feeds import feed_document
from .routes.hub import hub
from .routes.manual import Manual
from .routes.metrics import metrics_routes
from .routes.publish import HttpPublisher
from .routes.stream import stream
from .routes.streams import SOURCES, chunks, offsets
from .routes.subscribe import subscribe
from .routes.subscriptions import errors, subscription, subscriptions
from .routes.transactions import piece, series, transaction
from .routes.upstream import callback
from .unserved import unserved_data

Handler = Callable[..., Awaitable[Response | ASGIApp]]


async def _no_transactions(context: Context, request: Request, *names: object) -> Response:
    """Raises `NotOnThisEngine`, to those who may log in."""
    await context.user(request, takes_tokens=True)
    raise NotOnThisEngine(
        "a transaction, all or nothing over all queues and published exactly once,",
        instead="publish messages or batches to /endpoint, at least once",
    )


class AnyMethod:
    """An ASGI application that calls the handler for every method, with the parts of the path."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        response = await self._handler(request, *request.path_params.values())
        await response(scope, receive, send)


class _Facet(Convertor[Target]):
    """A facet of an exchange or queue, with or without a virtual host: the whole path."""

    regex: str  # type: ignore[misc]  # of each instance, since starlette has no arguments here

    def __init__(self, facet: str) -> None:
        self.regex = f"(?:[^/]*/)?{facet}/[xq]/[^/]*"

    def convert(self, value: str) -> Target:
        """Returns the resource of a path; raises `Problem` 400 for an invalid name."""
        target = parse(f"/{value}".encode("latin-1"))
        assert target is not None, "the regular expression accepts nothing else"
        return target

    def to_string(self, value: Target) -> str:
        return value.path(value.facet).removeprefix("/")


class _Document(Convertor[DocumentPlace]):
    """The document of a feed or an output, with or without a virtual host: the whole path."""

    regex = r"(?:[^/]*/)?feeds/[^/]*\.(?:atom|rss|json)"

    def convert(self, value: str) -> DocumentPlace:
        """Returns the document of a path; raises `Problem` 400 for an invalid name."""
        for segment in value.split("/"):
            decode(segment.encode("latin-1"))
        document = read_path(f"/{value}")
        assert document is not None, "the regular expression accepts nothing else"
        return document

    def to_string(self, value: DocumentPlace) -> str:
        return value.path.removeprefix("/")


class _Secret(Convertor[str]):
    """A path segment that is a credential, not decoded; it may be empty."""

    regex = "[^/]*"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


for _facet in FACETS:
    register_url_convertor(_facet.decode(), _Facet(_facet.decode()))
register_url_convertor("secret", _Secret())
register_url_convertor("document", _Document())


def secret_routes(context: Context, publisher: HttpPublisher) -> list[BaseRoute]:
    """Returns the routes of URLs that are credentials."""
    handlers = {CAPABILITY_PATH: capability, CALLBACK_PATH: callback}
    return [
        Route(path + "{secret:secret}", AnyMethod(partial(handler, context, publisher)))
        for path, handler in handlers.items()
    ]


def _stream_handlers() -> dict[str, Handler]:
    """Returns the handlers of a stream, with or without the letter that says what it is."""
    return {
        f"/streams/{{vhost}}/{letter}{{name}}/{handler.__name__}": partial(handler, source=source)
        for letter, source in SOURCES.items()
        for handler in (offsets, chunks)
    }


def other_routes(context: Context, is_ready: Callable[[], bool]) -> list[BaseRoute]:
    """Returns all other routes; publishes to `endpoint` don't get here."""

    def has_unserved_data() -> bool:
        return bool(unserved_data(context.broker))

    pages = OwnFiles(directory=UI)
    handlers: dict[str, Handler] = {
        "/hub": hub,
        "/subscriptions": subscriptions,
        "/subscriptions/errors": errors,
        "/transactions/{query}": series,
        "/transactions/{query}/{number}": transaction,
        "/transactions/{query}/{number}/{partition}/{attempt}/{piece}": piece,
        "/{target:endpoint}": endpoint,
        "/{target:subscribe}": subscribe,
        "/{target:subscriptions}": subscription,
        "/{target:stream}": stream,
        **_stream_handlers(),
    }
    if not context.engine.has_transactions():
        of_them = [path for path in handlers if path.startswith("/transactions/")]
        handlers |= dict.fromkeys(of_them, _no_transactions)
    return [
        *(Route(path, AnyMethod(partial(handler, context))) for path, handler in handlers.items()),
        Mount("/api", Api(context)),
        Route("/", AnyMethod(partial(plain.landing, pages))),
        Route("/health/live", plain.live),
        Route("/health/ready", partial(plain.ready, is_ready, has_unserved_data)),
        Route("/openapi.json", plain.openapi),
        *metrics_routes(context),
        Mount("/static", StaticFiles(directory=PAGES)),
        Mount("/ui", pages),
        Mount("/js", PublicFiles(directory=MODULES)),
        *(Route(path, plain.folder) for path in FOLDERS),
        Mount("/demos", Demos(context)),
        Mount("/docs/api", ApiDocs()),
        Mount("/docs", Manual(context)),
        Route("/{document:document}", AnyMethod(partial(feed_document, context))),
    ]
