"""Logs each HTTP request if the setting `access_log` is on.

The query is left out, and so is the part of a path behind `/in/` and `/hub/callback/`; of a URL in
a path, such as the callback of a subscription, scheme and host are logged. The rest may be secret.
"""

from __future__ import annotations

import logging
import time
from urllib.parse import quote, unquote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...hub.audit.documents import without_path
from ..access.local_requests import CYCLE, peer_of
from ..logs.formats import FIELDS
from ..requests.paths import SECRET_PREFIXES

log = logging.getLogger(__name__)
REFUSED = "refused"
"""Key in the extension `CYCLE`: status and size of a response that the protocol sent instead of
the application."""
_HIDDEN = b"..."
_UNQUOTED_URL = b"://"


class AccessLog:
    """ASGI middleware that logs requests with their responses."""

    def __init__(self, application: ASGIApp) -> None:
        self._application = application
        log.setLevel(logging.INFO)  # whatever `log_level` says

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began_s = time.perf_counter()
        status = sent_bytes = 0

        async def send_on(message: Message) -> None:
            nonlocal status, sent_bytes
            status = message.get("status", status)
            sent_bytes += len(message.get("body", b""))
            await send(message)

        try:
            await self._application(scope, receive, send_on)
        finally:
            refused = scope.get("extensions", {}).get(CYCLE, {}).get(REFUSED)
            status, sent_bytes = refused or (status, sent_bytes)
            log_request(
                peer_of(scope),
                scope["method"],
                scope["raw_path"],
                scope["http_version"],
                status,
                sent_bytes,
                time.perf_counter() - began_s,
            )


def log_request(
    peer: str,
    method: str,
    raw_path: bytes,
    http_version: str,
    status: int | str,
    sent_bytes: int,
    took_s: float,
) -> None:
    """Logs one request. Empty strings and a status of 0 stand for unknown values."""
    path = _redacted(raw_path)
    log.info(
        '%s "%s %s HTTP/%s" %s %d bytes %.1f ms',
        peer or "-",
        method or "-",
        path or "-",
        http_version,
        status or "unanswered",
        sent_bytes,
        took_s * 1000,
        extra={
            FIELDS: {
                "peer": peer, "method": method, "path": path, "status": status,
                "sent_bytes": sent_bytes, "took_ms": round(took_s * 1000, 1),
            }
        },
    )  # fmt: skip


def _redacted(raw_path: bytes) -> str:
    for prefix in (*SECRET_PREFIXES, _UNQUOTED_URL):
        before, found, _ = raw_path.partition(prefix)
        if found:
            return (before + found + _HIDDEN).decode("latin-1")
    return "/".join(map(_without_url, raw_path.decode("latin-1").split("/")))


def _without_url(segment: str) -> str:
    """Returns the segment, or scheme and host of the URL that it is."""
    name = unquote(segment)
    shown = without_path(name)
    return segment if shown == name else quote(shown, safe="")
