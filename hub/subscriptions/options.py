"""The options of a subscription, beside topic, callback and lease.

Each field is a parameter of `/subscribe` and `/hub`; absent ones have the defaults here. They are
stored as one JSON text, so that a new option needs no migration.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from ..delivery.signature import METHODS
from ..errors import BadRequest

Format = Literal["plain", "cloudevents-binary", "cloudevents-structured"]
FORMATS: tuple[Format, ...] = ("plain", "cloudevents-binary", "cloudevents-structured")
MAX_IN_FLIGHT = 1_000
MAX_TPS = 1_000_000
MAX_CONTACT_CHARACTERS = 1_000
MAX_AUTH_CHARACTERS = 1_024


class Contact(msgspec.Struct, frozen=True, omit_defaults=True):
    """The contact for a subscription (RabbitHub's fork)."""

    app_name: str = ""
    contact_name: str = ""
    phone: str = ""
    email: str = ""
    description: str = ""


class AnonymousClient(msgspec.Struct, frozen=True):
    """The network and the domains for which a subscription without credentials counts."""

    client: str
    callback_domain: str
    topic_domain: str


class Options(msgspec.Struct, frozen=True, omit_defaults=True):
    """The options of a subscription. `in_flight` 0 stands for the hub's setting, `max_tps` 0 for no
    limit."""

    signature_method: str = ""
    """One of `signature.METHODS`; empty for the hub's setting."""
    format: Format = "plain"
    strict_order: bool = False
    in_flight: int = 0
    max_tps: int = 0
    ha_mode: str = ""
    """Stored and shown; it has no effect on one node."""
    contact: Contact | None = None
    anonymous_client: AnonymousClient | None = msgspec.field(default=None, name="stranger")
    """Set by the hub for an anonymous client."""
    is_verified: bool = True
    """Whether the intent was verified: False for `hub.verify=none`."""


DEFAULTS = Options()
"""Shared by all who choose nothing: ten thousand idle subscriptions must stay small."""


class Keys(msgspec.Struct, frozen=True, omit_defaults=True):
    """A subscription's secrets; stored sealed, never shown.

    `previous` signs too until `previous_until` (wall time in seconds), so that a target can
    change its secret without refusing what is under way (Standard Webhooks, key rotation).
    `basic_auth` is base64 of `user:password`, as RabbitHub's fork has it.
    """

    secret: str | None = None
    previous: str | None = None
    previous_until: float = 0.0
    basic_auth: str | None = None


NO_KEYS = Keys()


def read_options(given: Mapping[str, str]) -> Options:
    """Returns the options of `hub.*` parameters; raises `BadRequest` for an invalid value."""
    chosen: dict[str, Any] = {
        field: read(name, given[name])
        for name, (field, read) in _READERS.items()
        if given.get(name, "") != ""
    }
    contact = _read_contact(given)
    if contact is not None:
        chosen["contact"] = contact
    return Options(**chosen) if chosen else DEFAULTS


def read_basic_auth(given: Mapping[str, str]) -> str | None:
    """Returns `hub.basic_auth`, base64 of `user:password`; raises `BadRequest` if it is not."""
    name = "hub.basic_auth"
    value = given.get(name)
    if not value:
        return None
    if len(value) > MAX_AUTH_CHARACTERS:
        limit = f"{MAX_AUTH_CHARACTERS} characters"
        raise BadRequest(f"is {len(value)} characters long", field=name, limit=limit)
    try:
        decoded = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadRequest("is not base64", field=name) from error
    if b":" not in decoded:
        raise BadRequest("is not base64 of user:password", field=name)
    return value


def as_parameters(options: Options) -> dict[str, str | int]:
    """Returns the parameters of the options, without `hub.` and without those of RabbitHub."""
    return {
        name.removeprefix("hub."): _as_parameter(getattr(options, field))
        for name, (field, _) in _READERS.items()
        if name not in RABBITHUB_PARAMETERS
    }


def _as_parameter(value: str | int) -> str | int:
    return {True: "strict", False: "loose"}[value] if isinstance(value, bool) else value


def _read_contact(given: Mapping[str, str]) -> Contact | None:
    found = {field: given.get(f"hub.{field}", "") for field in Contact.__struct_fields__}
    for field, value in found.items():
        if len(value) > MAX_CONTACT_CHARACTERS:
            limit = f"{MAX_CONTACT_CHARACTERS} characters"
            reason = f"is {len(value)} characters long"
            raise BadRequest(reason, field=f"hub.{field}", limit=limit)
        if "\0" in value:
            raise BadRequest("must not contain NUL", field=f"hub.{field}")
    if not any(found.values()):
        return None
    if not found["app_name"]:
        raise BadRequest("is required of a contact", field="hub.app_name")
    return Contact(**found)


def _integer(low: int, high: int) -> Callable[[str, str], int]:
    def read(name: str, value: str) -> int:
        limit = f"{low} to {high}"
        if not (value.isascii() and value.isdigit() and len(value) <= len(str(high))):
            raise BadRequest("is not a number in range", field=name, value=value, limit=limit)
        if not low <= int(value) <= high:
            raise BadRequest("is out of range", field=name, value=value, limit=limit)
        return int(value)

    return read


def _word(*words: str) -> Callable[[str, str], str]:
    def read(name: str, value: str) -> str:
        if value not in words:
            raise BadRequest("is unknown", field=name, value=value, limit=", ".join(words))
        return value

    return read


def _order(name: str, value: str) -> bool:
    return _word("strict", "loose")(name, value) == "strict"


def _ha_mode(name: str, value: str) -> str:
    if value in ("all", "none") or (value.isascii() and value.isdigit() and len(value) < 5):
        return value
    raise BadRequest("is unknown", field=name, value=value, limit="all, none or a number")


_READERS: dict[str, tuple[str, Callable[[str, str], object]]] = {
    "hub.signature_method": ("signature_method", _word(*METHODS)),
    "hub.format": ("format", _word(*FORMATS)),
    "hub.order": ("strict_order", _order),
    "hub.in_flight": ("in_flight", _integer(0, MAX_IN_FLIGHT)),
    "hub.max_tps": ("max_tps", _integer(0, MAX_TPS)),
    "hub.ha_mode": ("ha_mode", _ha_mode),
}
RABBITHUB_PARAMETERS = frozenset({"hub.max_tps", "hub.ha_mode"})
"""Parameters that have keys of their own in RabbitHub's listing."""
PARAMETERS = (*_READERS, "hub.basic_auth", *(f"hub.{n}" for n in Contact.__struct_fields__))
"""All parameters that are read here."""
