"""Definitions as a file: all that is kept, in RabbitMQ's form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from ...core.definitions.decode import decode
from ...core.definitions.kinds import (
    BindingDefinition,
    Definition,
    ExchangeDefinition,
    PermissionDefinition,
    QueueDefinition,
    UserDefinition,
    VhostDefinition,
)
from ...core.proto.handshake import COMPATIBLE_VERSION
from .document import ARGON2
from .values import table_to_json


def exported(definitions: Mapping[bytes, bytes]) -> bytes:
    """The file, UTF-8. Raises `ConfigError` for a definition that can't be decoded.

    Whether one refers to something that is missing is not asked, so that it can be mended.
    """
    document: dict[str, Any] = {
        "rabbit_version": COMPATIBLE_VERSION,
        "rabbitmq_version": COMPATIBLE_VERSION,
        "product_name": "Warren",
        "product_version": version("warren"),
    }
    sections = ("users", "vhosts", "permissions", "topic_permissions", "parameters",
                "global_parameters", "policies", "queues", "exchanges", "bindings")  # fmt: skip
    document |= {section: [] for section in sections}
    for key in definitions:
        section, entry = _entry(decode(key, definitions[key]))
        document[section].append(entry)
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _entry(found: Definition) -> tuple[str, dict[str, Any]]:
    """Its section, and what stands there."""
    match found:
        case VhostDefinition():
            return "vhosts", {"name": found.name}
        case UserDefinition():
            return "users", _user(found)
        case PermissionDefinition():
            return "permissions", found._asdict()
        case ExchangeDefinition():
            return "exchanges", _exchange(found)
        case QueueDefinition():
            return "queues", _queue(found)
        case BindingDefinition():
            return "bindings", _binding(found)


def _user(found: UserDefinition) -> dict[str, Any]:
    return {
        "name": found.name,
        "password_hash": found.password_hash,
        "hashing_algorithm": ARGON2,
        "tags": list(found.tags),
        "limits": {},
    }


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
