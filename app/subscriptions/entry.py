"""Parses a subscription in JSON: an entry of a batch, or the body of a PUT (docs/rabbithub.md).

The keys are those of a listing, so that an exported listing can be imported. Keys that only report
state are ignored; unknown ones are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...core.auth import ADMINISTRATOR, User
from ...hub.errors import BadRequest
from ...hub.requests import Kind, Resource, SubscribeRequest
from ...hub.subscriptions.intent import VERIFY_NONE
from ...hub.subscriptions.options import DEFAULTS, Contact, Keys, as_parameters
from ..access.authorization import is_trusted
from .document import BASIC_AUTH, REDACTED

IGNORED = frozenset(
    {"lease_expiry_time_microsec", "pseudo_queue", "id", "dialect", "condition", "paused_reason",
     "breaker", "breaker_until", "success_ratio",
     "suspended_reason", "blocked", "errors", "expires_at", "last_success_at"}
)  # fmt: skip
READ = frozenset(
    {"vhost", "resource_type", "resource_name", "topic", "callback", "lease_seconds", "ha_mode",
     "status", "max_tps", "outbound_auth", "contact", "owner", "topic_url", "sink", "secret",
     "options", "verification"}
)  # fmt: skip
_VERIFICATIONS = ("callback", "token", VERIFY_NONE)
UNDEFINED = "undefined"
"""RabbitHub's text for a missing value."""
_MAYBE_UNDEFINED = frozenset({"ha_mode", "outbound_auth", "contact", *Contact.__struct_fields__})
_OPTIONS = tuple(as_parameters(DEFAULTS))
_AUTH = "hub.basic_auth"
KINDS: Mapping[str, Kind] = {"exchange": "x", "queue": "q", "x": "x", "q": "q"}

Known = Callable[[SubscribeRequest], Keys | None]
"""Returns the secrets of the existing subscription, or None."""


@dataclass(frozen=True, slots=True)
class SubscriptionEntry:
    """A parsed entry. `sink` is set for a shortcut, which has no callback; `owner` is None for the
    requesting user."""

    request: SubscribeRequest
    sink: Resource | None
    owner: str | None
    is_active: bool


def read_entry(raw: Any, user: User, base_url: str, known: Known) -> SubscriptionEntry:
    """Parses an entry. Raises `BadRequest` naming the bad key."""
    if not isinstance(raw, dict):
        raise BadRequest("an entry must be an object", field="subscriptions")
    entry = _present(raw)
    _check_known("", entry, READ | IGNORED)
    sink = entry.get("sink")
    bare = _request(entry, user, base_url)
    request = _with_keys(bare, entry, known)
    return SubscriptionEntry(
        request=request,
        sink=None if sink is None else _resource(_object("sink", sink), "sink."),
        owner=_optional(entry, "owner"),
        # A subscription that was suspended because its source was deleted counts as active.
        is_active=_status(entry) == "active" or entry.get("suspended_reason") is not None,
    )


def _request(entry: Mapping[str, Any], user: User, base_url: str) -> SubscribeRequest:
    return SubscribeRequest(
        source=_resource(entry),
        callback=_text(entry, "callback"),
        topic=_text(entry, "topic"),
        user=user.name,
        base_url=base_url,
        verify=(_verify(entry),),
        lease_seconds=_optional(entry, "lease_seconds"),
        topic_url=_optional(entry, "topic_url") or "",
        given=_given(entry),
        is_administrator=ADMINISTRATOR in user.tags,
        is_trusted=is_trusted(user),
    )


def _verify(entry: Mapping[str, Any]) -> str:
    """Returns `hub.verify`: none for an entry that was not verified, else async."""
    found = entry.get("verification", "callback")
    if found not in _VERIFICATIONS:
        limit = ", ".join(_VERIFICATIONS)
        raise BadRequest("is unknown", field="verification", value=str(found)[:80], limit=limit)
    return VERIFY_NONE if found == VERIFY_NONE else "async"


def _given(entry: Mapping[str, Any]) -> dict[str, str]:
    """Returns options and contact as parameters of `/subscribe`."""
    contact = _present(_object("contact", entry.get("contact", {})))
    options = _present(_object("options", entry.get("options", {})))
    _check_known("contact.", contact, Contact.__struct_fields__)
    _check_known("options.", options, _OPTIONS)
    own = {key: entry[key] for key in ("max_tps", "ha_mode") if key in entry}
    values = {**own, **options, **contact}
    return {f"hub.{name}": _as_text(name, value) for name, value in values.items()}


def _with_keys(
    request: SubscribeRequest, entry: Mapping[str, Any], known: Known
) -> SubscribeRequest:
    """Returns the request with its secrets; redacted ones are those of the existing
    subscription."""
    secret, basic_auth = _optional(entry, "secret"), _basic_auth(entry)
    if REDACTED in (secret, basic_auth):
        keys = known(request)
        if keys is None:
            key = "secret" if secret == REDACTED else "outbound_auth.auth_config"
            reason = "is redacted, but the subscription does not exist yet: give the value"
            raise BadRequest(reason, field=key)
        secret = keys.secret if secret == REDACTED else secret
        basic_auth = keys.basic_auth if basic_auth == REDACTED else basic_auth
    given = request.given if basic_auth is None else {**request.given, _AUTH: basic_auth}
    return replace(request, secret=secret, given=given)


def _basic_auth(entry: Mapping[str, Any]) -> str | None:
    auth = _object("outbound_auth", entry.get("outbound_auth", {}))
    if not auth:
        return None
    kind = _text(auth, "auth_type", "outbound_auth.")
    if kind != BASIC_AUTH:
        reason = "is an unknown way to authenticate"
        raise BadRequest(reason, field="outbound_auth.auth_type", value=kind, limit=BASIC_AUTH)
    return _text(auth, "auth_config", "outbound_auth.")


def _status(entry: Mapping[str, Any]) -> str:
    status = entry.get("status", "active")
    if status not in ("active", "inactive"):
        limit = "active, inactive"
        raise BadRequest("is unknown", field="status", value=str(status), limit=limit)
    return str(status)


def _resource(entry: Mapping[str, Any], prefix: str = "") -> Resource:
    kind = _text(entry, "resource_type", prefix)
    if kind not in KINDS:
        limit = "exchange, queue"
        raise BadRequest("is unknown", field=f"{prefix}resource_type", value=kind, limit=limit)
    vhost, name = _text(entry, "vhost", prefix), _text(entry, "resource_name", prefix)
    return Resource(vhost, KINDS[kind], name)


def _text(entry: Mapping[str, Any], key: str, prefix: str = "") -> str:
    if key not in entry:
        raise BadRequest("is required", field=prefix + key)
    return _as_text(prefix + key, entry[key])


def _optional(entry: Mapping[str, Any], key: str) -> str | None:
    return _as_text(key, entry[key]) if key in entry else None


def _as_text(key: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise BadRequest("is neither a string nor an integer", field=key)
    return str(value)


def _object(key: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise BadRequest("is not an object", field=key)
    return value


def _present(found: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: value
        for key, value in found.items()
        if value is not None and not (key in _MAYBE_UNDEFINED and value == UNDEFINED)
    }


def _check_known(prefix: str, found: Mapping[str, Any], names: Collection[str]) -> None:
    unknown = next((name for name in found if name not in names), None)
    if unknown is not None:
        limit = ", ".join(sorted(names))
        raise BadRequest("is unknown", field=prefix + unknown[:80], limit=limit)
