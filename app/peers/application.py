"""The HTTP interface of a hub that waits: its health, publishes, and all else at the active hub."""

from __future__ import annotations

from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from ...hub.peers.peers import Peers
from ..http.websocket import AcceptedUpgrade, Headers
from ..problems import Problem
from ..responses.error_pages import answer_problem
from .forwarding import AGAIN, Forwarding
from .hops import FIELD, Hops
from .publishing import StandbyPublisher

_LIVE = b"/health/live"
_READY = b"/health/ready"


class AllUpgrades:
    """Implements `UpgradeRules`: the active hub decides about WebSockets."""

    def is_for_application(self, path: bytes, headers: Headers, /) -> bool:
        return True

    def accept(self, headers: Headers, peer: str, path: bytes) -> AcceptedUpgrade:
        raise AssertionError("unreachable: all offers are for the application")


class StandbyApplication:
    """Publishes what it can, and passes other requests on; answers them with 503 while no hub is
    active."""

    def __init__(
        self, peers: Peers, hops: Hops, publishing: StandbyPublisher, base_path: str
    ) -> None:
        self._peers = peers
        self._publishing = publishing
        self._base_path = base_path.encode()
        self._forwarding = Forwarding(hops)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["raw_path"].removeprefix(self._base_path)
        try:
            if path == _LIVE:
                await JSONResponse({"status": "ok"})(scope, receive, send)
            elif path == _READY:
                await (await self._ready())(scope, receive, send)
            elif not await self._publishing(scope, receive, send):
                await self._forward(scope, receive, send)
        except ClientDisconnect:
            return
        except Problem as problem:
            await answer_problem(problem, scope)(scope, receive, send)

    async def _ready(self) -> Response:
        """Answers 200 if the active hub can be reached: then this one can answer any request.
        Without it publishes are taken all the same."""
        warnings = []
        try:
            self._forwarding.links.keep(await self._forwarding.reach(self._address()))
        except Problem as problem:
            warnings.append(problem.detail)
        status = 503 if warnings else 200
        return JSONResponse({"status": "standby", "warnings": warnings}, status)

    async def _forward(self, scope: Scope, receive: Receive, send: Send) -> None:
        if any(name == FIELD for name, _ in scope["headers"]):
            raise Problem(503, "this hub is a standby, and not the active one", headers=AGAIN)
        await self._forwarding(scope, receive, send, self._address())

    def _address(self) -> str:
        active = self._peers.active
        if not self._peers.waits or active is None or not active.address:
            raise Problem(503, "no hub with this database is active yet", headers=AGAIN)
        return active.address

    def close(self) -> None:
        """Ends what was passed on: the hub before this one is not active any more."""
        self._forwarding.links.close()
