"""The paths that belong to no resource: landing page, health, OpenAPI document."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router

LANDING = """\
Warren, an HTTP-first pubsub hub.

PUT  /endpoint/x/NAME?amqp.exchange_type=topic   declare an exchange
POST /endpoint/x/NAME?hub.topic=KEY              publish to it
POST /subscribe/x/NAME                           subscribe a callback
     /endpoint/q/NAME, /subscribe/q/NAME         the same for queues

/openapi.json has the rest.
"""


def plain_routes(is_ready: Callable[[], bool]) -> Router:
    """Raises `HTTPException` 404 and 405 from within, as any route."""

    async def ready(_: Request) -> Response:
        up = is_ready()
        return JSONResponse({"status": "ok" if up else "unavailable"}, 200 if up else 503)

    return Router(
        [
            Route("/", _landing),
            Route("/health/live", _live),
            Route("/health/ready", ready),
            Route("/openapi.json", _openapi),
        ],
        redirect_slashes=False,
    )


async def _landing(_: Request) -> Response:
    return Response(LANDING, media_type="text/plain")


async def _live(_: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _openapi(_: Request) -> Response:
    from importlib.metadata import version  # on first need: it reads the installed metadata

    from ..openapi import document

    return JSONResponse(document(version("warren")))
