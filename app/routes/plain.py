"""Landing page, health checks, OpenAPI document, and paths without a route."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from ..problems import Problem
from ..requests.paths import FACETS
from ..responses.error_pages import HTML
from ..responses.negotiation import choose
from ..suggestions import suggestion
from ..unserved import WHERE
from .browser_files import INDEX, OwnFiles

TEXT = "text/plain"
LANDING = """\
Warren, an HTTP-first pubsub hub.

PUT  /endpoint/x/NAME?amqp.exchange_type=topic   declare an exchange
POST /endpoint/x/NAME?hub.topic=KEY              publish to it
POST /subscribe/x/NAME                           subscribe a callback
     /endpoint/q/NAME, /subscribe/q/NAME         the same for queues
POST /hub                                        WebSub: subscribe, unsubscribe, publish
GET  /streams/VHOST/x|q/NAME/offsets, .../chunks read a stream as it lies in the log
GET  /subscriptions                              list subscriptions (administrators)

/ in a browser is the web UI: what flows, what is stuck, and why.
/docs/ is the documentation, /docs/api/ shows each operation of the HTTP API,
/demos/ what a web page can do.

/openapi.json describes all paths.
"""
WARNING = f"some stored data can't be read or served; {WHERE}"
"""Without details, since no credentials are needed."""
MAX_PATH_CHARACTERS = 200
SERVER = "*"
"""The target of a request about the whole server (RFC 9112 3.2.4)."""
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS")
_KNOWN = (
    "/api", "/demos/", "/docs/", "/docs/api/", "/endpoint", "/health/live", "/health/ready", "/hub",
    "/openapi.json", "/streams", "/subscribe", "/subscriptions",
)  # fmt: skip


async def folder(request: Request) -> Response:
    """Redirects to the same path with a slash."""
    return RedirectResponse(request.url.path.rpartition("/")[2] + "/")


async def ready(
    is_ready: Callable[[], bool], has_unserved_data: Callable[[], bool], _: Request
) -> Response:
    """Answers 503 until the start is complete.

    Damaged data is a warning, not a reason to send clients elsewhere: all other data is served, and
    no other server has it.
    """
    up = is_ready()
    warnings = [WARNING] if has_unserved_data() else []
    status = "ok" if up else "unavailable"
    return JSONResponse({"status": status, "warnings": warnings}, 200 if up else 503)


async def missing(request: Request) -> Response:
    """Answers `OPTIONS *` (RFC 9110 9.3.7); raises `Problem` 404 for a path without a route."""
    path = request.scope["raw_path"].decode("latin-1")[:MAX_PATH_CHARACTERS]
    if path != SERVER:
        raise Problem(404, f"there is nothing at {path}{_hint(path)}; GET / lists the main paths")
    if request.method != "OPTIONS":
        raise Problem(400, f"'*' is the whole server and takes OPTIONS only, not {request.method}")
    return Response(status_code=204, headers={"Allow": ", ".join(METHODS)})


def _hint(path: str) -> str:
    """Returns a suggestion for an unknown path."""
    first, *rest = path.split("/")[1:]
    for facet in (first, *rest[:1]):
        if facet.encode() in FACETS:
            return f", /{facet}/x/NAME is an exchange and /{facet}/q/NAME a queue"
    return suggestion(path, _KNOWN) or suggestion("/" + first, _KNOWN)


async def landing(pages: OwnFiles, request: Request) -> Response:
    """Returns the web UI to browsers, and to others what there is, as text. Raises `Problem` 501
    for other methods, as RabbitHub does."""
    match request.method:
        case "GET" | "HEAD":
            if choose(request.headers.get("accept", ""), (TEXT, HTML)) == HTML:
                response = await pages.get_response(INDEX, request.scope)
            else:
                response = Response(LANDING, media_type=TEXT)
            response.headers["Vary"] = "Accept"
            return response
        case "POST":
            return Response("You posted!", media_type="text/plain")
        case "OPTIONS":  # what HAProxy's `option httpchk` asks of servers by default
            return Response(status_code=204, headers={"Allow": "GET, HEAD, OPTIONS"})
    raise Problem(501, f"{request.method} is not supported here")


async def live(_: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def openapi(_: Request) -> Response:
    from importlib.metadata import version  # on first need: it reads the installed metadata

    from ..openapi import document

    return JSONResponse(document(version("warrenmq")))
