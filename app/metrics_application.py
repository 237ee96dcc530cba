"""The ASGI application of the metrics' own port."""

from __future__ import annotations

from starlette.requests import ClientDisconnect
from starlette.routing import Router
from starlette.types import Receive, Scope, Send

from .access.clients import Clients
from .context import Context
from .problems import problem_of
from .responses.error_pages import answer_problem
from .routes.metrics import metrics_routes


class MetricsApplication:
    """Serves the metrics, and nothing else."""

    def __init__(self, context: Context, clients: Clients | None = None) -> None:
        self._router = Router(metrics_routes(context), redirect_slashes=False)
        self._clients = clients

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._clients is not None:
            self._clients.reveal(scope)
        try:
            # With an `app` starlette raises 404 and 405 instead of answering them.
            await self._router({**scope, "app": self}, receive, send)
        except ClientDisconnect:
            return
        except Exception as error:
            await answer_problem(problem_of(error), scope)(scope, receive, send)
