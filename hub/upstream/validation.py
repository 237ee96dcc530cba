"""Checks an owner's request for an upstream before it is stored."""

from __future__ import annotations

from ..capabilities.capabilities import check_text
from ..errors import BadRequest, CallbackRefused
from ..guard.guard import Guard
from ..guard.own import is_own
from .upstream import UpstreamLeases, UpstreamRequest

DEFAULT_LEASE_S = 10 * 86_400  # WebSub 5.3.1 calls ten days a good default
MAX_LEASE_S = 10 * 365 * 86_400
MAX_SECRET_BYTES = 199  # WebSub 5.1: less than 200 bytes
MAX_KEY_BYTES = 255  # an AMQP short string


def check_request(request: UpstreamRequest, leases: UpstreamLeases, guard: Guard) -> None:
    """Raises `CallbackRefused` for URLs that must not be requested, `BadRequest` for the rest."""
    for field, url in (("url", request.url), ("hub", request.hub)):
        if url or field == "url":
            _check_url(field, url, guard)
        if is_own(url, [request.base_url]):
            raise CallbackRefused("is this hub's own address", field=field, value=url)
    if not 1 <= request.lease_seconds <= MAX_LEASE_S:
        limit = f"1 to {MAX_LEASE_S}"
        value = str(request.lease_seconds)
        raise BadRequest("is out of range", field="lease_seconds", value=value, limit=limit)
    if request.routing_key is not None:
        check_text("routing_key", request.routing_key, MAX_KEY_BYTES)
    if leases.given_secret is not None:
        _check_secret(leases.given_secret)


def _check_url(field: str, url: str, guard: Guard) -> None:
    try:
        guard.check(url)
    except CallbackRefused as error:
        # The error has no value for a URL with user information.
        raise CallbackRefused(
            error.reason, field=field, value=error.value, limit=error.limit
        ) from error


def _check_secret(secret: str) -> None:
    """Raises `BadRequest`, without showing the secret."""
    size = len(secret.encode())
    if not 1 <= size <= MAX_SECRET_BYTES:
        limit = f"1 to {MAX_SECRET_BYTES} bytes"
        raise BadRequest(f"is {size} bytes long", field="secret", limit=limit)
