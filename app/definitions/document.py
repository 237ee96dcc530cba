"""The file: RabbitMQ's definitions in JSON, section by section.

A missing section changes nothing; an empty one means that there are none of its kind. A key that is
not known is left out, as in RabbitMQ, and listed.
"""

from __future__ import annotations

import json
from typing import Any, Literal, NoReturn, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from ...core.errors import ConfigError
from .left_out import LeftOut

CLUSTER_ID = "internal_cluster_id"
OPERATOR_POLICY = "operator_policy"
VHOST_LIMITS = "vhost-limits"

_WHOLE_SERVER = ("users", "vhosts", "permissions", "topic_permissions", "global_parameters")
"""Sections that a document of one virtual host does not have."""
_IN_VHOST = ("exchanges", "queues", "bindings", "policies", "parameters")
_VHOST_NAME = "original_vhost_name"
"""Key of RabbitMQ 4 by which the document of one virtual host is told."""
_OF_VHOST_ITSELF = ("description", "metadata", "limits")
Found = TypeVar("Found")
Pairs = dict[str, Any] | list[tuple[str, Any]]
"""An object; `rabbitmqctl` of 3.10 writes some as lists of pairs."""


class DefinitionEntry(Struct, kw_only=True, forbid_unknown_fields=True):
    """An object of the file."""


class UserEntry(DefinitionEntry):
    """A user. A plain `password` is for editing by hand; it is hashed before it is stored.

    An empty `password_hash` allows no login by password. `argon2_hash` is Warren's own key:
    RabbitMQ refuses a file with a hash of an unknown algorithm, and ignores an unknown key.
    """

    name: str
    password_hash: str | None = None
    hashing_algorithm: str | None = None
    argon2_hash: str | None = None
    password: str | None = None
    tags: str | list[str] = ""
    limits: Pairs = {}


class VhostEntry(DefinitionEntry):
    """A virtual host. Description, tags and queue type may be in `metadata` instead or too."""

    name: str
    description: str | None = None
    tags: str | list[str] | None = None
    metadata: dict[str, Any] = {}
    limits: Pairs = {}
    tracing: bool = False
    default_queue_type: str | None = None


class VhostMetadata(Struct, kw_only=True):
    """The known keys of metadata; RabbitMQ stores any others too."""

    description: str = ""
    tags: str | list[str] = []
    default_queue_type: Literal["", "undefined", "classic", "quorum", "stream"] = ""
    protected_from_deletion: bool = False


class PermissionEntry(DefinitionEntry):
    user: str
    vhost: str
    configure: str
    write: str
    read: str


class TopicPermissionEntry(DefinitionEntry):
    user: str
    vhost: str
    exchange: str
    write: str
    read: str


class PolicyValue(DefinitionEntry, kw_only=True, rename={"apply_to": "apply-to"}):
    """A policy without its name."""

    pattern: str
    definition: Pairs
    priority: int = 0
    apply_to: str = "all"


class PolicyEntry(PolicyValue, kw_only=True):
    vhost: str
    name: str


class ParameterEntry(DefinitionEntry):
    """An operator policy, the limits of a virtual host, or a parameter of any other component."""

    component: str
    vhost: str
    name: str
    value: Any


class GlobalParameterEntry(DefinitionEntry):
    name: str
    value: Any


class ExchangeEntry(DefinitionEntry):
    name: str
    vhost: str
    type: str
    durable: bool = True
    auto_delete: bool = False
    internal: bool = False
    arguments: dict[str, Any] = {}


class QueueDefinitionEntry(DefinitionEntry):
    name: str
    vhost: str
    durable: bool = True
    auto_delete: bool = False
    type: str | None = None
    arguments: dict[str, Any] = {}


class BindingEntry(DefinitionEntry):
    source: str
    vhost: str
    destination: str
    destination_type: Literal["queue", "exchange"]
    routing_key: str = ""
    arguments: dict[str, Any] = {}


class DefinitionsDocument(DefinitionEntry):
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
    topic_permissions: list[TopicPermissionEntry] | UnsetType = UNSET
    parameters: list[ParameterEntry] | UnsetType = UNSET
    global_parameters: list[GlobalParameterEntry] | UnsetType = UNSET
    policies: list[PolicyEntry] | UnsetType = UNSET
    exchanges: list[ExchangeEntry] | UnsetType = UNSET
    queues: list[QueueDefinitionEntry] | UnsetType = UNSET
    bindings: list[BindingEntry] | UnsetType = UNSET


_ENTRIES: dict[str, type[DefinitionEntry]] = {
    "users": UserEntry,
    "vhosts": VhostEntry,
    "permissions": PermissionEntry,
    "topic_permissions": TopicPermissionEntry,
    "parameters": ParameterEntry,
    "global_parameters": GlobalParameterEntry,
    "policies": PolicyEntry,
    "exchanges": ExchangeEntry,
    "queues": QueueDefinitionEntry,
    "bindings": BindingEntry,
}


def parse(raw: bytes, left_out: LeftOut, vhost: str | None = None) -> DefinitionsDocument:
    """Reads a file of the server, or one of a virtual host. Raises `ConfigError` naming the place
    in the file."""
    try:
        found = json.loads(raw.decode(), object_pairs_hook=_unique, parse_constant=_no_constant)
        if isinstance(found, dict):
            found = _whole(found) if vhost is None else _in_vhost(found, vhost)
        _leave_out_unknown_keys(found, left_out)
        document = msgspec.convert(found, DefinitionsDocument)
    except msgspec.ValidationError as error:
        raise ConfigError(_placed(str(error))) from error
    except RecursionError as error:
        raise ConfigError("the file is nested too deeply") from error
    except ValueError as error:
        raise ConfigError(f"the file is not JSON: {error}") from error
    _leave_out_tracing(document, left_out)
    return document


def _whole(found: dict[str, Any]) -> dict[str, Any]:
    """Returns the document of a server; raises `ConfigError` for that of one virtual host."""
    if _VHOST_NAME in found:
        raise ConfigError(
            f"the document has the definitions of one vhost, '{found[_VHOST_NAME]}': use "
            "/api/definitions/VHOST, or --vhost, to add them to one that exists"
        )
    return found


def _in_vhost(found: dict[str, Any], vhost: str) -> dict[str, Any]:
    """Returns the document of one virtual host as one of the server. Raises `ConfigError` for
    sections that it can't have."""
    for section in _WHOLE_SERVER:
        if found.get(section):
            raise ConfigError(f"{section}: a document of one vhost has none; use /api/definitions")
    left_out = (*_WHOLE_SERVER, *_OF_VHOST_ITSELF, _VHOST_NAME)
    whole = {key: value for key, value in found.items() if key not in left_out}
    itself = {key: found[key] for key in _OF_VHOST_ITSELF if key in found}
    if itself:
        whole["vhosts"] = [{"name": vhost, **itself}]
    for section in _IN_VHOST:
        if isinstance(found.get(section), list):
            whole[section] = [
                {**one, "vhost": vhost} if isinstance(one, dict) else one for one in found[section]
            ]
    return whole


def converted(found: Any, kind: type[Found], place: str) -> Found:
    """Returns the entry as its type; raises `ConfigError` naming the place."""
    try:
        return msgspec.convert(found, kind)
    except msgspec.ValidationError as error:
        complaint = _placed(str(error))
        raise ConfigError(f"{place}: {complaint}" if place else complaint) from error


def object_of(found: Any, place: str) -> dict[str, Any]:
    """Returns the object as its type, as `converted`; it may be written as pairs."""
    if isinstance(found, list):
        return dict(converted(found, list[tuple[str, Any]], place))
    return converted(found, dict[str, Any], place)


def _placed(text: str) -> str:
    """Turns msgspec's `text - at $.place` into `place: text`."""
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


def _leave_out_unknown_keys(found: Any, left_out: LeftOut) -> None:
    left_out.unknown_keys(found, DefinitionsDocument.__struct_encode_fields__)
    for section, kind in _ENTRIES.items() if isinstance(found, dict) else ():
        entries = found.get(section)
        for number, entry in enumerate(entries if isinstance(entries, list) else ()):
            left_out.unknown_keys(entry, kind.__struct_encode_fields__, f"{section}[{number}]")


def _leave_out_tracing(document: DefinitionsDocument, left_out: LeftOut) -> None:
    for number, vhost in enumerate(document.vhosts or ()):
        if vhost.tracing:
            left_out.note(f"vhosts[{number}].tracing", "messages are not traced here")
