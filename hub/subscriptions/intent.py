"""Reads the `hub.*` parameters of a subscribe or unsubscribe (docs/rabbithub.md)."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

import msgspec

from ...core.errors import access_refused
from ..delivery.signature import check_secret
from ..errors import BadRequest
from ..requests import Mode, SubscribeRequest
from ..settings import HubSettings
from .options import Options, read_basic_auth, read_options
from .subscription import Subscription

MAX_SECRET_BYTES = 199  # WebSub 5.1: less than 200 bytes
MAX_TOPIC_BYTES = 255  # an AMQP short string
MAX_VERIFY_TOKEN_BYTES = 1_024  # it is sent in a URL, which has its own limits
VERIFY_NONE = "none"
_VERIFY_MODES = ("sync", "async")
_MAX_LEASE_DIGITS = 18
_HAS_NUL = "must not contain NUL"  # PostgreSQL stores none in a text


@dataclass(frozen=True, slots=True)
class Intent:
    """The checked parameters of a request."""

    callback: str
    topic: str
    """The key to bind with."""
    shown_topic: str
    """The topic as the callback gets it: the URL at `/hub`, else the key."""
    lease_seconds: int
    is_sync: bool
    is_verified: bool
    """Whether the intent is verified: not if a trusted user says `hub.verify=none`."""
    verify_token: str | None
    secret: str | None
    basic_auth: str | None
    options: Options


def read_intent(mode: Mode, request: SubscribeRequest, settings: HubSettings) -> Intent:
    """Returns the checked parameters; raises `BadRequest` if one is missing, unknown or too long.

    Requests to `/hub` are verified after the answer, whatever `hub.verify` says (WebSub 5.1.2).
    """
    topic = _limited("hub.topic", _required("hub.topic", request.topic), MAX_TOPIC_BYTES)
    verify = "async" if request.topic_url else _read_verify(request)
    options = read_options(request.given)
    if verify == VERIFY_NONE:
        options = msgspec.structs.replace(options, is_verified=False)
    return Intent(
        callback=_required("hub.callback", request.callback),
        topic=topic,
        shown_topic=request.topic_url or topic,
        lease_seconds=_lease_s(mode, request, settings),
        is_sync=verify != "async",
        is_verified=verify != VERIFY_NONE,
        verify_token=_read_verify_token(request.verify_token),
        secret=_read_secret(request.secret),
        basic_auth=read_basic_auth(request.given),
        options=options,
    )


def grant_lease(requested: str | None, settings: HubSettings) -> int:
    """Returns the lease by RabbitHub's rule at `/subscribe`: the default for what is no positive
    number, else what was asked, up to the maximum."""
    text = (requested or "").strip()
    if not (text.isascii() and text.isdigit()) or not text.strip("0"):
        return settings.default_lease_s
    return _shortened(text, settings.max_lease_s)


def renewed_lease_s(requested: str | int, subscription: Subscription, settings: HubSettings) -> int:
    """Returns the lease that a renewal grants, by the rule of the dialect of the subscription.
    Raises `BadRequest` as `read_lease`."""
    if not subscription.is_websub:
        return grant_lease(str(requested), settings)
    return read_lease(str(requested), settings, is_anonymous=subscription.is_anonymous)


def read_lease(requested: str | None, settings: HubSettings, *, is_anonymous: bool = False) -> int:
    """Returns the lease by the rule of `/hub`: the default for none, else what was asked, up to the
    maximum (WebSub 5.1). Raises `BadRequest` for what is no positive number."""
    text, longest_s = (requested or "").strip(), settings.hub_max_lease_s
    if is_anonymous:
        longest_s = min(longest_s, settings.hub_anonymous_max_lease_s)
    if not text:
        return min(settings.hub_default_lease_s, longest_s)
    if not (text.isascii() and text.isdigit()) or not text.strip("0"):
        reason, limit = "is no number of seconds", f"1 to {longest_s}, longer ones are shortened"
        raise BadRequest(reason, field="hub.lease_seconds", value=text, limit=limit)
    return _shortened(text, longest_s)


def _shortened(digits: str, longest_s: int) -> int:
    if len(digits) > _MAX_LEASE_DIGITS:  # int() of a megabyte of digits takes seconds
        return longest_s
    return min(int(digits), longest_s)


def append_query(url: str, *parameters: tuple[str, str]) -> str:
    """Returns the URL with parameters added after its own query, which stays as it is (WebSub
    5.1)."""
    added = "&".join(f"{name}={quote(value, safe='')}" for name, value in parameters)
    if "?" not in url:
        return f"{url}?{added}"
    return url + added if url.endswith(("?", "&")) else f"{url}&{added}"


def _lease_s(mode: Mode, request: SubscribeRequest, settings: HubSettings) -> int:
    granted_s, longest_s = _granted_lease_s(mode, request, settings), request.longest_lease_s
    return granted_s if longest_s is None else min(granted_s, longest_s)


def _granted_lease_s(mode: Mode, request: SubscribeRequest, settings: HubSettings) -> int:
    if not request.topic_url:
        return grant_lease(request.lease_seconds, settings)
    if mode == "unsubscribe":  # which ignores a lease (WebSub 5.1)
        return settings.hub_default_lease_s
    return read_lease(request.lease_seconds, settings, is_anonymous=bool(request.client))


def _read_verify(request: SubscribeRequest) -> str:
    """Returns the first supported of a list that may be repeated, comma separated, or both.

    Raises `ChannelError` 403 if a user who is not trusted offers only `none`.
    """
    values = request.verify
    offered = [word.strip() for value in values for word in value.split(",") if word.strip()]
    if not offered:
        return "sync"
    modes = (*_VERIFY_MODES, VERIFY_NONE) if request.is_trusted else _VERIFY_MODES
    for word in offered:
        if word in modes:
            return word
    if VERIFY_NONE in offered:
        raise access_refused(
            f"hub.verify=none for user '{request.user}': it needs the tag administrator or "
            "hub-trusted"
        )
    raise BadRequest(
        "names no known way of verification",
        field="hub.verify",
        value=",".join(offered),
        limit="sync, async",
    )


def _read_verify_token(token: str | None) -> str | None:
    if token is None or len(token.encode(errors="replace")) <= MAX_VERIFY_TOKEN_BYTES:
        return token
    limit = f"{MAX_VERIFY_TOKEN_BYTES} bytes"
    raise BadRequest("is too long", field="hub.verify_token", limit=limit)


def _read_secret(secret: str | None) -> str | None:
    if not secret:
        return None
    size = len(secret.encode(errors="replace"))
    if size > MAX_SECRET_BYTES:
        limit = f"{MAX_SECRET_BYTES} bytes"
        raise BadRequest(f"is {size} bytes long", field="hub.secret", limit=limit)
    if "\0" in secret:
        raise BadRequest(_HAS_NUL, field="hub.secret")
    return check_secret(secret)


def _required(field: str, value: str | None) -> str:
    if value is None:
        raise BadRequest("is required", field=field)
    return value


def _limited(field: str, value: str, limit: int) -> str:
    size = len(value.encode(errors="replace"))
    if size > limit:
        reason = f"is {size} bytes long"
        raise BadRequest(reason, field=field, value=value, limit=f"{limit} bytes")
    if "\0" in value:
        raise BadRequest(_HAS_NUL, field=field, value=value)
    return value
