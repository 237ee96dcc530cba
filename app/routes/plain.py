"""Landing page, health checks, OpenAPI document and static files."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route, Router
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from ..context import Context
from ..error_pages import STATIC
from ..paths import FACETS
from ..problems import Problem
from ..suggestions import suggestion
from ..unserved import WHERE

LANDING = """\
Warren, an HTTP-first pubsub hub.

PUT  /endpoint/x/NAME?amqp.exchange_type=topic   declare an exchange
POST /endpoint/x/NAME?hub.topic=KEY              publish to it
POST /subscribe/x/NAME                           subscribe a callback
     /endpoint/q/NAME, /subscribe/q/NAME         the same for queues
POST /hub                                        WebSub: subscribe, unsubscribe, publish
GET  /subscriptions                              list subscriptions (administrators)

/openapi.json describes all paths.
"""
WARNING = f"some stored data can't be read or served; {WHERE}"
"""Without details, since no credentials are needed."""
MAX_PATH_CHARACTERS = 200
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS")
_KNOWN = (
    "/api", "/endpoint", "/health/live", "/health/ready", "/hub", "/openapi.json", "/subscribe",
    "/subscriptions",
)  # fmt: skip
_ALL_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT")


def plain_routes(is_ready: Callable[[], bool], has_unserved_data: Callable[[], bool]) -> Router:
    """Returns the router of these paths, which raises `HTTPException` 404 and 405."""

    async def ready(_: Request) -> Response:
        """Damaged data is a warning, not a reason to send clients elsewhere: all other data is
        served, and no other server has it."""
        up = is_ready()
        warnings = [WARNING] if has_unserved_data() else []
        status = "ok" if up else "unavailable"
        return JSONResponse({"status": status, "warnings": warnings}, 200 if up else 503)

    return Router(
        [
            Route("/", _landing, methods=_ALL_METHODS),
            Route("/health/live", _live),
            Route("/health/ready", ready),
            Route("/openapi.json", _openapi),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        redirect_slashes=False,
        default=_nothing,
    )


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    path = scope["raw_path"].decode("latin-1")[:MAX_PATH_CHARACTERS]
    raise Problem(404, f"there is nothing at {path}{_hint(path)}; GET / lists the main paths")


def _hint(path: str) -> str:
    """Returns a suggestion for an unknown path."""
    first, *rest = path.split("/")[1:]
    for facet in (first, *rest[:1]):
        if facet.encode() in FACETS:
            return f", /{facet}/x/NAME is an exchange and /{facet}/q/NAME a queue"
    return suggestion(path, _KNOWN) or suggestion("/" + first, _KNOWN)


async def _landing(request: Request) -> Response:
    """Returns the landing page. Raises `Problem` 501 for other methods, as RabbitHub does."""
    match request.method:
        case "GET" | "HEAD":
            return Response(LANDING, media_type="text/plain")
        case "POST":
            return Response("You posted!", media_type="text/plain")
    raise Problem(501, f"{request.method} is not supported here")


async def server(_: Context, request: Request) -> Response:
    """Handles `OPTIONS *` (RFC 9110 9.3.7)."""
    if request.method != "OPTIONS":
        raise Problem(400, f"'*' is the whole server and takes OPTIONS only, not {request.method}")
    return Response(status_code=204, headers={"Allow": ", ".join(METHODS)})


async def _live(_: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _openapi(_: Request) -> Response:
    from importlib.metadata import version  # on first need: it reads the installed metadata

    from ..openapi import document

    return JSONResponse(document(version("warrenmq")))
