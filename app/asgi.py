"""The ASGI application: publishes go straight to their route, other requests are dispatched by
path."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from starlette.requests import ClientDisconnect, Request
from starlette.routing import Match
from starlette.types import Receive, Scope, Send

from ..hub.upstream.upstream import CALLBACK_PATH
from .clients import Clients
from .context import Context
from .error_pages import answer_problem
from .paths import (
    CAPABILITY_PATH,
    ApiPath,
    HubPath,
    Prefixes,
    SecretPath,
    Target,
    parse,
    parse_api,
    parse_hub_path,
    parse_secret,
)
from .problems import Problem, problem_of
from .routes.api.router import Api
from .routes.capability import capability
from .routes.endpoint import endpoint
from .routes.hub import hub
from .routes.plain import plain_routes, server
from .routes.publish import Publisher
from .routes.subscribe import subscribe
from .routes.subscriptions import errors, subscription, subscriptions
from .routes.upstream import callback
from .unserved import unserved_data

CACHED_PATHS = 4096
_FACETS = {"endpoint": endpoint, "subscribe": subscribe, "subscriptions": subscription}
_HUB_PATHS = {
    "/hub": hub,
    "/subscriptions": subscriptions,
    "/subscriptions/errors": errors,
    "*": server,
}
_SECRETS = {CAPABILITY_PATH: capability, CALLBACK_PATH: callback}

Path = Target | HubPath | ApiPath | SecretPath


class Application:
    def __init__(
        self,
        context: Context,
        publisher: Publisher,
        *,
        base_path: str = "",
        clients: Clients | None = None,
        is_ready: Callable[[], bool] = lambda: True,
    ) -> None:
        self._context = context
        self._publisher = publisher
        self._clients = clients
        self._api = Api(context)
        self._plain = plain_routes(is_ready, lambda: bool(unserved_data(context.broker)))
        prefixes = Prefixes(base_path)

        @lru_cache(CACHED_PATHS)
        def resolve(raw_path: bytes) -> tuple[str, Path | None]:
            prefix, rest = prefixes.split(raw_path)
            found = parse_hub_path(rest) or parse(rest) or parse_api(rest) or parse_secret(rest)
            # If `/hub` is the base path, secret URLs that were issued without it still work.
            return prefix, found or parse_secret(raw_path)

        self._resolve = resolve

    def has(self, raw_path: bytes) -> bool:
        """Returns whether HTTP serves the path, other than the landing page."""
        try:
            prefix, target = self._resolve(raw_path)
        except Problem:
            return True
        path = raw_path.removeprefix(prefix.encode()).decode("latin-1")
        scope = {"type": "http", "method": "GET", "path": path, "headers": []}
        return target is not None or (
            path != "/"
            and any(one.matches(scope)[0] is not Match.NONE for one in self._plain.routes)
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"scope type {scope['type']} is not supported")
        if self._clients is not None:
            self._clients.reveal(scope)
        try:
            prefix, target = self._resolve(scope["raw_path"])
        except Exception as error:
            await answer_problem(problem_of(error), scope)(scope, receive, send)
            return
        is_post = scope["method"] == "POST"
        if is_post and isinstance(target, Target) and target.facet == "endpoint":
            await self._publisher(scope, receive, send, target)
        else:
            await self._answer(scope, receive, send, prefix, target)

    async def _answer(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        prefix: str,
        target: Path | None,
    ) -> None:
        scope["prefix"] = scope["root_path"] = prefix
        scope["app"] = self  # makes starlette raise 404 and 405 instead of answering them
        try:
            if target is None:
                await self._plain(scope, receive, send)
                return
            if isinstance(target, ApiPath):
                await self._api(scope, receive, send, target)
                return
            request = Request(scope, receive)
            if isinstance(target, HubPath):
                response = await _HUB_PATHS[target.path](self._context, request)
            elif isinstance(target, SecretPath):
                route = _SECRETS[target.prefix]
                response = await route(self._context, self._publisher, request, target.secret)
            else:
                response = await _FACETS[target.facet](self._context, request, target)
        except ClientDisconnect:
            return
        except Exception as error:
            response = answer_problem(problem_of(error), scope)
        await response(scope, receive, send)
