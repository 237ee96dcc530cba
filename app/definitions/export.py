"""Writes all stored definitions as a file in RabbitMQ's form."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from typing import Any

from ...core.auth import exported as hash_of
from ...core.auth.hashes import ARGON2, SHA256
from ...core.definitions.decode import decode
from ...core.definitions.keys import is_fact
from ...core.definitions.kinds import (
    BindingDefinition,
    Definition,
    ExchangeDefinition,
    GlobalParameterDefinition,
    OperatorPolicyDefinition,
    ParameterDefinition,
    PermissionDefinition,
    PolicyDefinition,
    QueueDefinition,
    TopicPermissionDefinition,
    UserDefinition,
    UserLimitsDefinition,
    VhostDefinition,
    VhostLimitsDefinition,
)
from ...core.proto.server_properties import COMPATIBLE_VERSION
from ...core.queue.names import INNER_MARK
from .document import OPERATOR_POLICY, VHOST_LIMITS
from .values import table_to_json

_DESCRIBING = ("description", "tags", "default_queue_type")
_Entered = (
    BindingDefinition
    | ExchangeDefinition
    | GlobalParameterDefinition
    | OperatorPolicyDefinition
    | ParameterDefinition
    | PermissionDefinition
    | PolicyDefinition
    | QueueDefinition
    | TopicPermissionDefinition
    | UserDefinition
    | VhostDefinition
    | VhostLimitsDefinition
)


def exported(definitions: Mapping[bytes, bytes]) -> bytes:
    """Returns the file, in UTF-8, which RabbitMQ reads too.

    Raises `ConfigError` for a definition that can't be decoded. References to missing definitions
    are not checked, so that they can be repaired.
    """
    document: dict[str, Any] = {
        "rabbit_version": COMPATIBLE_VERSION,
        "rabbitmq_version": COMPATIBLE_VERSION,
        "product_name": "Warren",
        "product_version": version("warrenmq"),
    }
    sections = ("users", "vhosts", "permissions", "topic_permissions", "parameters",
                "global_parameters", "policies", "queues", "exchanges", "bindings")  # fmt: skip
    document |= {section: [] for section in sections}
    found = [decode(key, definitions[key]) for key in definitions if not is_fact(key)]
    limits = {one.user: one.limits for one in found if isinstance(one, UserLimitsDefinition)}
    for section, entry in _entries(found):
        document[section].append(entry)
    for user in document["users"]:
        user["limits"] = limits.get(user["name"], {})
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _entries(definitions: Iterable[Definition]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Returns section and entry of each definition. Inner queues are created with their exchanges;
    limits of users are added to the users."""
    for found in definitions:
        if isinstance(found, UserLimitsDefinition):
            continue
        if not isinstance(found, QueueDefinition) or INNER_MARK not in found.name:
            yield _entry(found)


def _entry(found: _Entered) -> tuple[str, dict[str, Any]]:
    match found:
        case VhostDefinition():
            return "vhosts", _vhost(found)
        case UserDefinition():
            return "users", _user(found)
        case PermissionDefinition():
            return "permissions", found._asdict()
        case TopicPermissionDefinition():
            return "topic_permissions", found._asdict()
        case PolicyDefinition():
            return "policies", {"vhost": found.vhost, "name": found.name, **_policy(found)}
        case OperatorPolicyDefinition():
            return "parameters", _parameter(
                OPERATOR_POLICY, found.vhost, found.name, _policy(found)
            )
        case VhostLimitsDefinition():
            return "parameters", _parameter(VHOST_LIMITS, found.vhost, "limits", found.limits)
        case ParameterDefinition():
            value = json.loads(found.value_json)
            return "parameters", _parameter(found.component, found.vhost, found.name, value)
        case GlobalParameterDefinition():
            value = json.loads(found.value_json)
            return "global_parameters", {"name": found.name, "value": value}
        case ExchangeDefinition():
            return "exchanges", _exchange(found)
        case QueueDefinition():
            return "queues", _queue(found)
        case BindingDefinition():
            return "bindings", _binding(found)


def _vhost(found: VhostDefinition) -> dict[str, Any]:
    """Returns the properties twice: older RabbitMQs read the entry, newer ones its metadata."""
    if not found.properties:
        return {"name": found.name}
    metadata = table_to_json(found.properties)
    own = {name: metadata[name] for name in _DESCRIBING if name in metadata}
    return {"name": found.name, **own, "metadata": metadata}


def _user(found: UserDefinition) -> dict[str, Any]:
    """Returns an argon2 hash in a key of its own: in RabbitMQ the user has no password then."""
    own, algorithm = hash_of(found.password_hash)
    entry: dict[str, Any] = {"name": found.name, "password_hash": own}
    if algorithm == ARGON2:
        entry |= {"password_hash": "", "argon2_hash": own}
    entry["hashing_algorithm"] = SHA256 if algorithm == ARGON2 else algorithm
    return entry | {"tags": list(found.tags)}


def _policy(found: PolicyDefinition | OperatorPolicyDefinition) -> dict[str, Any]:
    return {
        "pattern": found.pattern,
        "apply-to": found.apply_to,
        "definition": table_to_json(found.definition),
        "priority": found.priority,
    }


def _parameter(component: str, vhost: str, name: str, value: Any) -> dict[str, Any]:
    return {"component": component, "vhost": vhost, "name": name, "value": value}


def _exchange(found: ExchangeDefinition) -> dict[str, Any]:
    return {
        "name": found.name,
        "vhost": found.vhost,
        "type": found.type_name,
        "durable": True,
        "auto_delete": found.auto_delete,
        "internal": found.internal,
        "arguments": table_to_json(found.arguments),
    }


def _queue(found: QueueDefinition) -> dict[str, Any]:
    return {
        "name": found.name,
        "vhost": found.vhost,
        "durable": True,
        "auto_delete": found.auto_delete,
        "arguments": table_to_json(found.arguments),
    }


def _binding(found: BindingDefinition) -> dict[str, Any]:
    return {
        "source": found.source,
        "vhost": found.vhost,
        "destination": found.destination,
        "destination_type": "exchange" if found.to_exchange else "queue",
        "routing_key": found.routing_key,
        "arguments": table_to_json(found.arguments),
    }
