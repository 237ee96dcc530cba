"""The file: RabbitMQ's definitions in JSON, section by section.

A section that is missing says nothing; one that is empty says that there is none of its kind.
What this Warren would have to ignore is refused, so that nobody relies on it.
"""

from __future__ import annotations

import json
from typing import Any, Literal, NoReturn, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from ...core.errors import ConfigError

_ABOUT_THE_CLUSTER = ("cluster_name", "cluster_tags", "internal_cluster_id")
"""Global parameters that RabbitMQ always writes; they name the cluster and rule nothing."""
OPERATOR_POLICY = "operator_policy"
VHOST_LIMITS = "vhost-limits"
_COMPONENTS = (OPERATOR_POLICY, VHOST_LIMITS)

Found = TypeVar("Found")
Pairs = dict[str, Any] | list[tuple[str, Any]]
"""An object; `rabbitmqctl` of 3.10 writes some as lists of pairs."""


class Entry(Struct, kw_only=True, forbid_unknown_fields=True):
    """One object of the file."""


class UserEntry(Entry):
    """`password` in clear is for mending by hand: it is hashed before it is kept. A `password_hash`
    that is empty means that nobody logs in by password. `argon2_hash` is Warren's own: RabbitMQ
    refuses a file with a hash that it does not know, and leaves out a key."""

    name: str
    password_hash: str | None = None
    hashing_algorithm: str | None = None
    argon2_hash: str | None = None
    password: str | None = None
    tags: str | list[str] = ""
    limits: Pairs = {}


class VhostEntry(Entry):
    """What describes it stands by itself, in `metadata`, or in both."""

    name: str
    description: str | None = None
    tags: str | list[str] | None = None
    metadata: dict[str, Any] = {}
    limits: Pairs = {}
    tracing: bool = False
    default_queue_type: str | None = None


class VhostMetadata(Struct, kw_only=True):
    """What is known of it; RabbitMQ keeps whatever it is given there."""

    description: str = ""
    tags: str | list[str] = []
    default_queue_type: Literal["", "undefined", "classic", "quorum", "stream"] = ""
    protected_from_deletion: bool = False


class PermissionEntry(Entry):
    user: str
    vhost: str
    configure: str
    write: str
    read: str


class TopicPermissionEntry(Entry):
    user: str
    vhost: str
    exchange: str
    write: str
    read: str


class PolicyValue(Entry, kw_only=True, rename={"apply_to": "apply-to"}):
    """What a policy says, whatever it is called."""

    pattern: str
    definition: Pairs
    priority: int = 0
    apply_to: str = "all"


class PolicyEntry(PolicyValue, kw_only=True):
    vhost: str
    name: str


class ParameterEntry(Entry):
    """Operator policies and limits of virtual hosts; other components are not built."""

    component: str
    vhost: str
    name: str
    value: Any


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
    type: str | None = None
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
    topic_permissions: list[TopicPermissionEntry] | UnsetType = UNSET
    parameters: list[ParameterEntry] | UnsetType = UNSET
    global_parameters: list[dict[str, Any]] = []
    policies: list[PolicyEntry] | UnsetType = UNSET
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


def converted(found: Any, kind: type[Found], place: str) -> Found:
    """Raises `ConfigError` naming the place."""
    try:
        return msgspec.convert(found, kind)
    except msgspec.ValidationError as error:
        complaint = _placed(str(error))
        raise ConfigError(f"{place}: {complaint}" if place else complaint) from error


def object_of(found: Any, place: str) -> dict[str, Any]:
    """As `converted` for an object that may be written as pairs."""
    if isinstance(found, list):
        return dict(converted(found, list[tuple[str, Any]], place))
    return converted(found, dict[str, Any], place)


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
    for at, parameter in enumerate(document.global_parameters):
        if parameter.get("name") not in _ABOUT_THE_CLUSTER:
            raise _not_built(f"global_parameters[{at}]")
    for at, entry in enumerate(document.parameters or ()):
        if entry.component not in _COMPONENTS:
            raise _not_built(f"parameters[{at}], of component '{entry.component}',")
    for at, vhost in enumerate(document.vhosts or ()):
        if vhost.tracing:
            raise _not_built(f"vhosts[{at}].tracing")


def _not_built(place: str) -> ConfigError:
    return ConfigError(f"{place} is not supported by this version; take it out")
