"""The public side of tunnels: requests whose Host is below the tunnel domain.

They never reach another route, whatever their path is, so nothing of this server is served on an
application's origin.
"""

from __future__ import annotations

import asyncio

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from ...core.resources.partial_content import PartialContents
from ...hub.tunnels.errors import TunnelError
from ...hub.tunnels.message import write_request
from ...hub.tunnels.pending_request import TunnelRequest
from ...hub.tunnels.reply import Reply
from ...hub.tunnels.tunnel import Tunnel
from ...hub.tunnels.tunnels import Tunnels
from ..access.clients import is_listed
from ..access.local_requests import CYCLE, FORWARDING, is_relayed, peer_of
from ..access.session_cookies import OWN_COOKIES
from ..http.disconnects import when_gone
from ..http.listen import printed
from ..http.websocket import Headers
from ..logs.request_context import REQUEST_ID_HEADER
from ..problems import Problem, problem_of
from ..requests.body import read_body
from .error_page import answer_requestor
from .links import claimed_by
from .replies import send_reply


class TunnelHost:
    """Passes requests on to applications, and their replies back. `max_hops` ends loops."""

    def __init__(self, tunnels: Tunnels, unfinished: PartialContents, max_hops: int) -> None:
        self._tunnels = tunnels
        self._unfinished = unfinished
        self._max_hops = max_hops

    def label_of(self, headers: Headers) -> str | None:
        """Returns the label that the request is for; None for a request to this server."""
        for name, value in headers:
            if name == b"host":
                return self._tunnels.addresses.label_of(value.decode("latin-1"))
        return None

    async def __call__(self, scope: Scope, receive: Receive, send: Send, label: str) -> None:
        budget = self._tunnels.budget
        try:
            tunnel = self._tunnels.labels.of(label)
            reply = await self._ask(scope, receive, tunnel)
            account = tunnel.registration.account
            budget.take(account, len(reply.body))
        except ClientDisconnect:
            return
        except Exception as error:
            await answer_requestor(problem_of(error), scope)(scope, receive, send)
            return
        try:
            _prefer_own_id(scope, reply)
            await send_reply(scope, send, reply)
        finally:
            budget.give_back(account, len(reply.body))

    async def _ask(self, scope: Scope, receive: Receive, tunnel: Tunnel) -> Reply:
        if scope.get("client") is None:
            raise Problem(400, "this request has no peer address to tell the application")
        limit = self._tunnels.settings.max_body_bytes
        # Apart from what the application sends, or anybody could keep it from replying.
        whose = f"requests to {claimed_by(tunnel)}"
        body = await read_body(receive, limit, self._unfinished, whose)
        done: asyncio.Future[Reply | TunnelError] = asyncio.get_running_loop().create_future()
        request = TunnelRequest(
            self._message(scope, body),
            printed(*scope["client"]),
            lambda outcome: None if done.done() else done.set_result(outcome),
            is_head=scope["method"] == "HEAD",
        )
        tunnel.ask(request)
        when_gone(scope, done.cancel)
        try:
            outcome = await done
        except asyncio.CancelledError:
            tunnel.withdraw(request)
            raise ClientDisconnect from None
        if isinstance(outcome, TunnelError):
            raise outcome
        return outcome

    def _fields(self, scope: Scope) -> Headers:
        """Returns the fields of the request. Who forwarded it is for trusted proxies to say."""
        headers: Headers = scope["headers"]
        if is_listed(scope) or not is_relayed(headers):
            return headers
        return [field for field in headers if field[0] not in FORWARDING]

    def _message(self, scope: Scope, body: bytes) -> bytes:
        query: bytes = scope["query_string"]
        return write_request(
            scope["method"],
            scope["raw_path"] + (b"?" + query if query else b""),
            self._fields(scope),
            body,
            client=peer_of(scope),
            scheme=scope["scheme"],
            max_hops=self._max_hops,
            own_cookies=OWN_COOKIES,
        )


def _prefer_own_id(scope: Scope, reply: Reply) -> None:
    """Leaves out this server's id of the request if the application has given it one."""
    if any(name == REQUEST_ID_HEADER for name, _ in reply.fields):
        cycle = scope["extensions"][CYCLE]["cycle"]
        cycle.default_headers = [
            field for field in cycle.default_headers if field[0] != REQUEST_ID_HEADER
        ]
