"""Converts the entries of users, virtual hosts, permissions, policies and limits."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UnsetType

from ...core.auth import hashed, imported
from ...core.auth.hashes import ARGON2, MD5
from ...core.definitions.kinds import (
    Definition,
    GlobalParameterDefinition,
    OperatorPolicyDefinition,
    ParameterDefinition,
    PermissionDefinition,
    PolicyDefinition,
    TopicPermissionDefinition,
    UserDefinition,
    UserLimitsDefinition,
    VhostDefinition,
    VhostLimitsDefinition,
)
from ...core.errors import ConfigError
from ...core.message.model import Table
from ...core.parameters import check_parameter
from ...core.vhosts import check_name as check_vhost_name
from .checks import at, table_of
from .document import (
    CLUSTER_ID,
    OPERATOR_POLICY,
    VHOST_LIMITS,
    GlobalParameterEntry,
    ParameterEntry,
    PermissionEntry,
    PolicyEntry,
    PolicyValue,
    TopicPermissionEntry,
    UserEntry,
    VhostEntry,
    VhostMetadata,
    converted,
    object_of,
)
from .values import json_text, table_from_json

_QUEUE_TYPES = {"quorum": "quorum", "stream": "stream"}
"""Default queue types that are stored; any other means classic."""
_LIMITS = "limits"
"""Name of the parameter with the limits of a virtual host."""


def users(
    entries: list[UserEntry] | UnsetType, usual_hashing: str | None = None
) -> Iterator[tuple[str, UserDefinition]]:
    """Returns the users. `usual_hashing` is the algorithm of hashes that don't name one; None to
    detect it."""
    for number, entry in enumerate(entries or ()):
        place = f"users[{number}]"
        with at(place):
            tags = tuple(sorted(set(_tags(entry.tags))))
            kept = _password_hash(entry, usual_hashing)
            yield place, UserDefinition(entry.name, kept, tags)


def _tags(tags: str | list[str]) -> list[str]:
    found = tags.split(",") if isinstance(tags, str) else tags
    return [tag.strip() for tag in found if tag.strip()]


def usual_hashing(rabbitmq_version: str) -> str | None:
    """Returns the algorithm of hashes without a name: MD5 before RabbitMQ 3.6, else None."""
    numbers = rabbitmq_version.split(".")[:2]
    if len(numbers) == 2 and all(map(str.isdecimal, numbers)):
        return MD5 if tuple(map(int, numbers)) < (3, 6) else None
    return None


def _password_hash(entry: UserEntry, usual_hashing: str | None) -> str:
    given = [one for one in (entry.password, entry.argon2_hash, entry.password_hash) if one]
    if len(given) > 1 or (not given and entry.password_hash is None):
        raise ConfigError(
            f"user '{entry.name}' needs either password_hash, argon2_hash or password"
        )
    if entry.password:
        return hashed(entry.password)
    if entry.argon2_hash:
        return imported(entry.argon2_hash, ARGON2)
    return imported(entry.password_hash or "", entry.hashing_algorithm or usual_hashing)


def user_limits(
    entries: list[UserEntry] | UnsetType,
) -> Iterator[tuple[str, UserLimitsDefinition]]:
    for number, entry in enumerate(entries or ()):
        if entry.limits:
            yield f"users[{number}].limits", UserLimitsDefinition(entry.name, dict(entry.limits))


def vhosts(entries: list[VhostEntry] | UnsetType) -> Iterator[tuple[str, VhostDefinition]]:
    for number, entry in enumerate(entries or ()):
        place = f"vhosts[{number}]"
        with at(place):
            check_vhost_name(entry.name)
            yield place, VhostDefinition(entry.name, _properties(entry))


def _properties(entry: VhostEntry) -> Table:
    """Returns the properties; the entry has precedence over its metadata."""
    own = {
        "description": entry.description,
        "tags": entry.tags,
        "default_queue_type": entry.default_queue_type,
    }
    said = entry.metadata | {name: value for name, value in own.items() if value is not None}
    with at("metadata"):
        known = converted(said, VhostMetadata, "")
        kept = {
            **said,
            "description": known.description,
            "tags": _tags(known.tags),
            "default_queue_type": _QUEUE_TYPES.get(known.default_queue_type),
        }
        return table_from_json({name: value for name, value in kept.items() if value})


def permissions(
    entries: list[PermissionEntry] | UnsetType,
) -> Iterator[tuple[str, PermissionDefinition]]:
    for number, entry in enumerate(entries or ()):
        yield (
            f"permissions[{number}]",
            PermissionDefinition(entry.user, entry.vhost, entry.configure, entry.write, entry.read),
        )


def topic_permissions(
    entries: list[TopicPermissionEntry] | UnsetType,
) -> Iterator[tuple[str, TopicPermissionDefinition]]:
    for number, entry in enumerate(entries or ()):
        yield (
            f"topic_permissions[{number}]",
            TopicPermissionDefinition(
                entry.user, entry.vhost, entry.exchange, entry.write, entry.read
            ),
        )


def policies(entries: list[PolicyEntry] | UnsetType) -> Iterator[tuple[str, PolicyDefinition]]:
    for number, entry in enumerate(entries or ()):
        place = f"policies[{number}]"
        with at(place):
            yield place, PolicyDefinition(entry.vhost, entry.name, *_specified(entry))


def _specified(value: PolicyValue) -> tuple[str, str, int, Table]:
    with at("definition"):
        definition = table_of(value.definition)
    return value.pattern, value.apply_to, value.priority, definition


def parameters(entries: list[ParameterEntry] | UnsetType) -> Iterator[tuple[str, Definition]]:
    for number, entry in enumerate(entries or ()):
        place = f"parameters[{number}]"
        with at(place):
            found = _parameter(entry)
            if not isinstance(found, VhostLimitsDefinition) or found.limits:
                yield place, found


def _parameter(entry: ParameterEntry) -> Definition:
    if entry.component == OPERATOR_POLICY:
        value = converted(entry.value, PolicyValue, "value")
        return OperatorPolicyDefinition(entry.vhost, entry.name, *_specified(value))
    if entry.component != VHOST_LIMITS:
        return ParameterDefinition(entry.component, entry.vhost, entry.name, json_text(entry.value))
    if entry.name != _LIMITS:
        raise ConfigError(f"name is '{entry.name}', limits of a vhost are called '{_LIMITS}'")
    return VhostLimitsDefinition(entry.vhost, table_of(object_of(entry.value, "value")))


def global_parameters(
    entries: list[GlobalParameterEntry] | UnsetType,
) -> Iterator[tuple[str, GlobalParameterDefinition]]:
    """Returns the parameters of the server. `CLUSTER_ID` is left out: it names the cluster that
    wrote the file."""
    for number, entry in enumerate(entries or ()):
        if entry.name == CLUSTER_ID:
            continue
        place = f"global_parameters[{number}]"
        with at(place):
            found = GlobalParameterDefinition(entry.name, json_text(entry.value))
            check_parameter(found)
            yield place, found


def vhost_limits(
    entries: list[VhostEntry] | UnsetType,
) -> Iterator[tuple[str, VhostLimitsDefinition]]:
    """Returns limits in entries of virtual hosts; RabbitMQ writes them as parameters too."""
    for number, entry in enumerate(entries or ()):
        if entry.limits:
            place = f"vhosts[{number}].limits"
            with at(place):
                yield place, VhostLimitsDefinition(entry.name, table_of(entry.limits))
