"""JSON bodies of successful responses.

PubSubHubbub and RabbitHub answer with 204 or an empty 202, so those have a body only if the
request accepts JSON by name; a 201 and a WebSub 202 always have one.
"""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from ...hub.requests import SubscribeRequest, SubscribeResult
from ..requests.paths import Target
from .negotiation import names

JSON = "application/json"
_VERIFIED = {"subscribe": "active", "unsubscribe": "ended"}
PENDING = "pending"


def wants_json(accept: str) -> bool:
    """Returns whether the Accept field names JSON; `*/*`, which most clients send, does not."""
    return names(accept, JSON)


def declared(target: Target, url: str) -> Response:
    """Returns the 201 for an exchange or queue that was created."""
    body = {"type": target.kind, "name": target.name, "vhost": target.vhost, "url": url}
    return _response(body, 201, {"Location": url})


def subscribed(
    mode: str, request: SubscribeRequest, result: SubscribeResult, accept: str
) -> Response:
    """Returns 204 once the callback has confirmed, or 200 with a body if JSON is accepted; 202
    with a body while verification is pending."""
    if not result.verified:
        return _response(_outcome(mode, PENDING, request, result), 202)
    if not wants_json(accept):
        return Response(status_code=204, headers={"Vary": "Accept"})
    body = _outcome(mode, _VERIFIED[mode], request, result)
    return _response(body, 200, {"Vary": "Accept"})


def encoded(body: object) -> bytes:
    """Returns JSON in one line, with a line end so that a terminal's prompt starts a new line."""
    return msgspec.json.encode(body) + b"\n"


def _response(body: object, status: int, headers: dict[str, str] | None = None) -> Response:
    return Response(encoded(body), status, headers, media_type=JSON)


def _outcome(
    mode: str, status: str, request: SubscribeRequest, result: SubscribeResult
) -> dict[str, object]:
    lease = {"lease_seconds": result.lease_seconds} if mode == "subscribe" else {}
    topic = request.topic_url or request.topic
    return {"mode": mode, "status": status, "topic": topic, "callback": request.callback, **lease}
