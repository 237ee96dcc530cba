"""The file: RabbitMQ's definitions in JSON, section by section.

A section that is missing says nothing; one that is empty says that there is none of its kind.
What this Warren would have to ignore is refused, so that nobody relies on it.
"""

from __future__ import annotations

import json
from typing import Any, Literal, NoReturn

import msgspec
from msgspec import UNSET, Struct, UnsetType

from ...core.errors import ConfigError

ARGON2 = "argon2"
"""`hashing_algorithm` of a hash in PHC form."""
_ABOUT_THE_CLUSTER = ("cluster_name", "cluster_tags", "internal_cluster_id")
"""Global parameters that RabbitMQ always writes; they name the cluster and rule nothing."""
_NOT_BUILT = ("topic_permissions", "parameters", "policies")


class Entry(Struct, kw_only=True, forbid_unknown_fields=True):
    """One object of the file."""


class UserEntry(Entry):
    """`password` in clear is for mending by hand: it is hashed before it is kept."""

    name: str
    password_hash: str | None = None
    hashing_algorithm: str | None = None
    password: str | None = None
    tags: str | list[str] = ""
    limits: dict[str, Any] = {}


class VhostEntry(Entry):
    """What describes it (`description`, `tags`, `metadata`) is for RabbitMQ and not kept."""

    name: str
    description: str = ""
    tags: list[str] = []
    metadata: dict[str, Any] = {}
    limits: list[Any] = []
    tracing: bool = False
    default_queue_type: Literal["classic", "undefined"] | None = None


class PermissionEntry(Entry):
    user: str
    vhost: str
    configure: str
    write: str
    read: str


class ExchangeEntry(Entry):
    name: str
    vhost: str
    type: str
    durable: bool = True
    auto_delete: bool = False
    internal: bool = False
    arguments: dict[str, Any] = {}


class QueueEntry(Entry):
    name: str
    vhost: str
    durable: bool = True
    auto_delete: bool = False
    type: Literal["classic"] = "classic"
    arguments: dict[str, Any] = {}


class BindingEntry(Entry):
    source: str
    vhost: str
    destination: str
    destination_type: Literal["queue", "exchange"]
    routing_key: str = ""
    arguments: dict[str, Any] = {}


class Document(Entry):
    """The whole file."""

    rabbit_version: str = ""
    rabbitmq_version: str = ""
    product_name: str = ""
    product_version: str = ""
    rabbitmq_definition_format: str = ""
    original_cluster_name: str = ""
    explanation: str = ""
    users: list[UserEntry] | UnsetType = UNSET
    vhosts: list[VhostEntry] | UnsetType = UNSET
    permissions: list[PermissionEntry] | UnsetType = UNSET
    topic_permissions: list[Any] = []
    parameters: list[Any] = []
    global_parameters: list[dict[str, Any]] = []
    policies: list[Any] = []
    exchanges: list[ExchangeEntry] | UnsetType = UNSET
    queues: list[QueueEntry] | UnsetType = UNSET
    bindings: list[BindingEntry] | UnsetType = UNSET


def parse(raw: bytes) -> Document:
    """Raises `ConfigError` naming the place in the file."""
    try:
        found = json.loads(raw.decode(), object_pairs_hook=_unique, parse_constant=_no_constant)
        document = msgspec.convert(found, Document)
    except msgspec.ValidationError as error:
        raise ConfigError(_placed(str(error))) from error
    except RecursionError as error:
        raise ConfigError("the file is nested too deeply") from error
    except ValueError as error:
        raise ConfigError(f"the file is not JSON: {error}") from error
    _refuse_unbuilt(document)
    return document


def _placed(text: str) -> str:
    """msgspec says `what - at $.place`; the place is what one looks for."""
    what, _, place = text.partition(" - at `$")
    place = place.rstrip("`").removeprefix(".")
    return f"{place}: {what}" if place else what


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"an object has the key {twice!r} twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _refuse_unbuilt(document: Document) -> None:
    for section in _NOT_BUILT:
        if getattr(document, section):
            raise _not_built(f"{section}[0]")
    for at, parameter in enumerate(document.global_parameters):
        if parameter.get("name") not in _ABOUT_THE_CLUSTER:
            raise _not_built(f"global_parameters[{at}]")
    for at, user in enumerate(document.users or ()):
        if user.limits:
            raise _not_built(f"users[{at}].limits")
    for at, vhost in enumerate(document.vhosts or ()):
        if vhost.limits:
            raise _not_built(f"vhosts[{at}].limits")
        if vhost.tracing:
            raise _not_built(f"vhosts[{at}].tracing")


def _not_built(place: str) -> ConfigError:
    return ConfigError(f"{place} is not supported by this version; take it out")
