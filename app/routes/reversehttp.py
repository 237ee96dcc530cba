"""`/reversehttp`: applications without an address enrol labels and manage them (docs/tunnels.md).

The gateway URL enrols; the Private URL `/reversehttp/LABEL/TOKEN` manages a label; a Request URL is
one segment below (`request_url.py`). Private and Request URLs are credentials: whoever has one has
the label.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ...core.auth import User
from ...hub.tunnels.tunnel import Tunnel
from ..access.authentication import authorization_of
from ..access.token_users import TokenUser
from ..context import Context
from ..problems import Problem, method_not_allowed, problem_of
from ..requests.forms import FORM, first
from ..requests.paths import TUNNELS_PATH
from ..responses.negotiation import choose
from ..responses.success_bodies import JSON, encoded
from ..tunnels.links import SAFETY, claimed_by, gateway_url, links, read_fields
from ..tunnels.listing import listing
from .relay import RELAY, relay
from .request_url import request_url

_HTML: Final = "text/html"


class Gateway:
    """Answers all requests at and below the gateway URL."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        label, *below = scope["path"].removeprefix(TUNNELS_PATH).strip("/").split("/")
        response: ASGIApp
        try:
            response = await self._answer(Request(scope, receive), label.lower(), below)
        except ClientDisconnect:
            raise
        except Exception as error:
            problem = problem_of(error)
            problem.headers.update(SAFETY)
            response = problem.response()
        await response(scope, receive, send)

    async def _answer(self, request: Request, label: str, below: list[str]) -> ASGIApp:
        if not self._context.hub.tunnels.settings.is_on:
            raise Problem(404, "tunnels are off (setting tunnels)")
        match below:
            case [token, request_id]:
                return await request_url(self._context, request, label, token, request_id)
            case [target] if label == RELAY and request.method == "POST":
                return await relay(self._context, request, target)
            case [token]:
                return await self._manage(request, label, token)
            case [] if not label:
                return await self._gateway(request)
        raise Problem(404, f"nothing is here; applications enrol at {TUNNELS_PATH}")

    async def _gateway(self, request: Request) -> Response:
        match request.method:
            case "POST":
                return await self._enrol(request)
            case "GET":
                return await self._status(request)
        raise method_not_allowed(request.method, "GET, POST")

    async def _enrol(self, request: Request) -> Response:
        gateway_url(self._context, request)  # the links would be to an unknown host
        user = await self._user(request)
        owner = "" if user is None else user.name
        form = await read_fields(self._context, request, f"enrolment of '{owner}'")
        if isinstance(user, TokenUser):
            user.require_label(first(form, "name") or "")
        tunnel, token, is_new = await self._context.hub.tunnels.enrol(
            first(form, "name"), first(form, "token"), first(form, "lease"), owner
        )
        headers = links(self._context, request, tunnel, token) | SAFETY
        return Response(status_code=201 if is_new else 204, headers=headers)

    async def _user(self, request: Request) -> User | None:
        """Returns the user; None for an anonymous client in development mode."""
        is_open = self._context.hub.tunnels.settings.is_open
        if is_open and authorization_of(request.scope) is None:
            return None
        return await self._context.user(request, takes_tokens=True)

    async def _status(self, request: Request) -> Response:
        """Lists the labels of the user; browsers are sent to the page of the web UI."""
        headers = {**SAFETY, "Vary": "Accept"}
        if choose(request.headers.get("accept", ""), (JSON, _HTML)) == _HTML:
            page = f"{self._context.base_url(request)}/#/tunnels"
            return RedirectResponse(page, status_code=303, headers=headers)
        user = await self._context.user(request)
        found = listing(self._context.hub.tunnels, user)
        return Response(encoded(found), media_type=JSON, headers=headers)

    async def _manage(self, request: Request, label: str, token: str) -> Response:
        """Handles a request to a Private URL."""
        tunnel = self._context.hub.tunnels.labels.with_token(label, token)
        match request.method:
            case "GET":
                found = tunnel.registration
                text = urlencode({"name": found.label, "lease": found.lease_s})
                return Response(text, media_type=FORM, headers=SAFETY)
            case "PUT":
                return await self._change(request, tunnel, token)
            case "DELETE":
                return await self._release(tunnel)
            case "POST":  # what `navigator.sendBeacon` can send
                form = await read_fields(self._context, request, claimed_by(tunnel))
                if first(form, "release") != "1":
                    raise Problem(400, "POST here releases the label, with release=1")
                return await self._release(tunnel)
        raise method_not_allowed(request.method, "GET, PUT, DELETE, POST")

    async def _change(self, request: Request, tunnel: Tunnel, token: str) -> Response:
        form = await read_fields(self._context, request, claimed_by(tunnel))
        changed = await self._context.hub.tunnels.change(
            tunnel, first(form, "token"), first(form, "lease")
        )
        headers = links(self._context, request, tunnel, changed or token) | SAFETY
        return Response(status_code=204, headers=headers)

    async def _release(self, tunnel: Tunnel) -> Response:
        await self._context.hub.tunnels.release(tunnel)
        return Response(status_code=204, headers=SAFETY)
