"""What a request that succeeded has done, told in a short JSON body.

PubSubHubbub and RabbitHub answer with 204, or with an empty 202, so there a body is for requests
that ask for JSON; a 201 and a WebSub 202 have always one.
"""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from ..hub.requests import SubscribeRequest, SubscribeResult
from .negotiation import names
from .paths import Target

JSON = "application/json"
_VERIFIED = {"subscribe": "active", "unsubscribe": "ended"}
PENDING = "pending"


def wants_json(accept: str) -> bool:
    """Whether JSON is named; `*/*`, which most clients send, is not enough."""
    return names(accept, JSON)


def declared(target: Target, url: str) -> Response:
    """201: it was not there before."""
    body = {"type": target.kind, "name": target.name, "vhost": target.vhost, "url": url}
    return _response(body, 201, {"Location": url})


def subscribed(mode: str, wish: SubscribeRequest, result: SubscribeResult, accept: str) -> Response:
    """204 once the callback has agreed, or 200 with a body for who asks for JSON; 202 with a body
    while it is still to be asked."""
    if not result.verified:
        return _response(_outcome(mode, PENDING, wish, result), 202)
    if not wants_json(accept):
        return Response(status_code=204, headers={"Vary": "Accept"})
    body = _outcome(mode, _VERIFIED[mode], wish, result)
    return _response(body, 200, {"Vary": "Accept"})


def encoded(body: object) -> bytes:
    """One line of JSON, with its end: the next prompt of a terminal is on its own."""
    return msgspec.json.encode(body) + b"\n"


def _response(body: object, status: int, headers: dict[str, str] | None = None) -> Response:
    return Response(encoded(body), status, headers, media_type=JSON)


def _outcome(
    mode: str, status: str, wish: SubscribeRequest, result: SubscribeResult
) -> dict[str, object]:
    lease = {"lease_seconds": result.lease_seconds} if mode == "subscribe" else {}
    topic = wish.topic_url or wish.topic
    return {"mode": mode, "status": status, "topic": topic, "callback": wish.callback, **lease}
