"""The ASGI application: publishes go straight to the publisher, other requests to their route."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from starlette.requests import ClientDisconnect
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Receive, Scope, Send

from .access.clients import Clients
from .access.cors import Cors
from .access.origins import AllowedOrigins
from .context import Context
from .http.websocket import Headers
from .problems import Problem, problem_of
from .requests.paths import TUNNELS_PATH, Prefixes, Target
from .responses.error_pages import answer_problem
from .route_table import AnyMethod, other_routes, secret_routes
from .routes.plain import missing
from .routes.publish import HttpPublisher
from .routes.request_url import REQUEST
from .routes.reversehttp import Gateway
from .tunnels.host import TunnelHost

CACHED_PATHS = 4096
CACHED_PATH_BYTES = 512
"""Longer paths are not cached: thousands of them would take 100 MB."""
_BELOW_GATEWAY = f"{TUNNELS_PATH}/".encode()
_REQUEST_URL_SLASHES = f"{TUNNELS_PATH}/LABEL/TOKEN/ID".count("/")
_MISSING = Route("/", AnyMethod(missing))
"""Handles paths that no other route has."""


class _Found(NamedTuple):
    """The route of a path."""

    publish_to: Target | None
    """Only of an endpoint."""
    route: BaseRoute
    scope: Scope
    """Joined to the scope of a request."""


class Application:
    """The HTTP interface. Below `base_path`, which may be empty, it serves all paths too."""

    def __init__(
        self,
        context: Context,
        publisher: HttpPublisher,
        *,
        base_path: str = "",
        clients: Clients | None = None,
        is_ready: Callable[[], bool] = lambda: True,
        tunnel_host: TunnelHost | None = None,
        page_origins: AllowedOrigins | None = None,
    ) -> None:
        self._publisher = publisher
        self._clients = clients
        self._tunnel_host = tunnel_host
        self._prefixes = Prefixes(base_path)
        self._cors = Cors(page_origins or AllowedOrigins(()), self._prefixes)
        self._secret_routes = secret_routes(context, publisher)
        self._gateway = Route(TUNNELS_PATH, Gateway(context))
        self._routes = [*self._secret_routes, self._gateway, *other_routes(context, is_ready)]
        self._cached = lru_cache(CACHED_PATHS)(self._find_route)

    def has(self, raw_path: bytes) -> bool:
        """Returns whether HTTP serves the path, other than the landing page."""
        try:
            found = self._find(raw_path)
        except Problem:
            return True
        return found.route is not _MISSING and found.scope["path"] != "/"

    def takes_websocket(self, raw_path: bytes, headers: Headers) -> bool:
        """Returns whether the application decides about an offer of WebSocket: the route of the
        path accepts it itself, or the host is that of a tunnel."""
        if self._tunnel_host is not None and self._tunnel_host.label_of(headers) is not None:
            return True
        try:
            names = self._find(raw_path).scope.get("path_params", {})
        except Problem:
            return False
        target = names.get("target")
        is_stream = isinstance(target, Target) and target.facet == "stream"
        return is_stream or REQUEST in names

    def _find(self, raw_path: bytes) -> _Found:
        if _BELOW_GATEWAY in raw_path:
            prefix, path = self._prefixes.split(raw_path)
            if path.startswith(_BELOW_GATEWAY):
                return self._below_gateway(prefix, path.decode("latin-1"))
        is_cached = len(raw_path) <= CACHED_PATH_BYTES
        return self._cached(raw_path) if is_cached else self._find_route(raw_path)

    def _below_gateway(self, prefix: str, path: str) -> _Found:
        """Returns the route of a path below the gateway of tunnels. Each Request URL is another
        path, used twice: a cache of paths would not have it. Each Request URL is another path, used
        twice: a cache of paths would not have it."""
        names = {REQUEST: path} if path.count("/") == _REQUEST_URL_SLASHES else {}
        return _Found(None, self._gateway, {**_scope(prefix, path), "path_params": names})

    def _find_route(self, raw_path: bytes) -> _Found:
        """Returns the route of a path; raises `Problem` 400 for a path with an invalid name."""
        prefix, path = self._prefixes.split(raw_path)
        # If `/hub` is the base path, secret URLs that were issued without it still work.
        return (
            _first(self._routes, prefix, path.decode("latin-1"))
            or _first(self._secret_routes, prefix, raw_path.decode("latin-1"))
            or _Found(None, _MISSING, _scope(prefix, path.decode("latin-1")))
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"scope type {scope['type']} is not supported")
        if self._clients is not None:
            self._clients.reveal(scope)
        if self._tunnel_host is not None:
            label = self._tunnel_host.label_of(scope["headers"])
            if label is not None:
                await self._tunnel_host(scope, receive, send, label)
                return
        origin = self._cors.origin(scope)
        if origin:
            if self._cors.is_preflight(scope):
                await self._cors.answer_preflight(scope, receive, send, origin)
                return
            send = self._cors.adding(scope, send, origin)
        try:
            found = self._find(scope["raw_path"])
        except Exception as error:
            await answer_problem(problem_of(error), scope)(scope, receive, send)
            return
        if found.publish_to is not None and scope["method"] == "POST":
            await self._publisher(scope, receive, send, found.publish_to)
        else:
            await self._answer(scope, receive, send, found)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, found: _Found) -> None:
        # With an `app` starlette raises 404 and 405 instead of answering them.
        scope = {**scope, **found.scope, "app": self}
        try:
            await found.route.handle(scope, receive, send)
        except ClientDisconnect:
            return
        except Exception as error:
            await answer_problem(problem_of(error), scope)(scope, receive, send)


def _first(routes: list[BaseRoute], prefix: str, path: str) -> _Found | None:
    scope = _scope(prefix, path)
    for route in routes:
        match, child_scope = route.matches({"type": "http", "method": "GET", **scope})
        if match is not Match.NONE:
            target = child_scope["path_params"].get("target")
            publish_to = target if target is not None and target.facet == "endpoint" else None
            return _Found(publish_to, route, {**scope, **child_scope})
    return None


def _scope(prefix: str, path: str) -> Scope:
    return {"prefix": prefix, "path": path, "root_path": ""}
