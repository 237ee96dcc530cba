"""Definitions between Warren and a real RabbitMQ, both ways: nothing of governance gets lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.core.definitions.support import NotingStore, restarted
from tests.support.rabbitmq import RabbitMQServer
from tests.support.users import GUEST_HASH
from warrenmq.app.definitions.export import exported
from warrenmq.core.definitions.kinds import UserDefinition

from .support import Kept, document, imported

Exported = dict[str, Any]

OBJECTS: dict[str, Exported] = {
    "users/tony": {"password": "secret", "tags": "policymaker,monitoring"},
    "vhosts/other": {"description": "for later", "tags": "a,b"},
    "permissions/other/tony": {"configure": "^t", "write": "", "read": ".*"},
    "topic-permissions/other/tony": {
        "exchange": "amq.topic", "write": "^{username}", "read": ".*",
    },
    "policies/other/ttl": {
        "priority": 3, "apply-to": "queues", "pattern": "^mail",
        "definition": {"message-ttl": 60000},
    },
    "policies/other/ha": {
        "pattern": "", "definition": {"ha-mode": "all", "alternate-exchange": "x"},
    },
    "operator-policies/other/limit": {"pattern": "^mail", "definition": {"max-length": 5}},
    "vhost-limits/other/max-queues": {"value": 5},
    "vhost-limits/other/max-connections": {"value": -1},
    "user-limits/tony/max-connections": {"value": 5},
    "user-limits/tony/max-channels": {"value": 10},
}  # fmt: skip
"""By their paths in the management API."""


@pytest.fixture(scope="module")
def server(rabbitmq: RabbitMQServer) -> Iterator[RabbitMQServer]:
    """A RabbitMQ that has these objects."""
    with httpx.Client(
        base_url=f"http://{rabbitmq.host}:{rabbitmq.management_port}/api/",
        auth=("guest", "guest"),
        timeout=60,
        event_hooks={"response": [httpx.Response.raise_for_status]},
    ) as api:
        for path, body in OBJECTS.items():
            api.put(path, json=body)
        yield rabbitmq
        for path in ("vhosts/other", "users/tony"):
            api.delete(path)


@pytest.fixture(scope="module")
def theirs(server: RabbitMQServer, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """What RabbitMQ has written: its management API leaves out what describes virtual hosts."""
    file = tmp_path_factory.mktemp("theirs") / "definitions.json"
    server.ctl("export_definitions", str(file))
    found: Exported = json.loads(file.read_bytes())
    return found


@pytest.fixture(scope="module")
def taken(theirs: Exported) -> Kept:
    """What Warren keeps of it."""
    return imported({}, theirs)


def test_an_export_of_rabbitmq_is_in_force_after_its_import(taken: Kept) -> None:
    broker, _ = restarted(NotingStore(taken))
    tony, other = broker.users.existing("tony"), broker.vhosts["other"]
    assert broker.users.passwords.check("tony", "secret", loopback=False) is tony
    assert tony.tags == {"policymaker", "monitoring"}
    assert tony.limits == {"max-connections": 5, "max-channels": 10}
    assert tony.permitted("other", "configure", "tea")
    assert not tony.permitted("other", "write", "tea")
    topics = tony.topic_rights("other", "amq.topic")
    assert topics is not None and topics.allow("write", "tony.x")
    assert other.properties == {"description": "for later", "tags": ["a", "b"]}
    assert other.limits.as_table() == {"max-queues": 5, "max-connections": -1}
    mail = other.declare_queue("mail")
    assert mail.rules is not None
    assert (mail.rules.message_ttl_ms, mail.rules.max_length) == (60_000, 5)
    assert other.exchanges["amq.topic"].alternate == "x"


def test_an_imported_export_of_rabbitmq_is_exported_unchanged(
    theirs: Exported, taken: Kept
) -> None:
    ours = document(taken)
    sections = ("policies", "parameters", "permissions", "topic_permissions", "users")
    for section in sections:
        assert ordered(ours[section]) == ordered(theirs[section]), section


def ordered(section: list[Exported]) -> list[str]:
    """Tags, tables and lists of pairs in one form."""
    return sorted(json.dumps(plain(entry), sort_keys=True) for entry in section)


def plain(found: Any) -> Any:
    if isinstance(found, list) and found and all(isinstance(one, list) for one in found):
        found = dict(found)
    if isinstance(found, dict):
        return {key: plain(value) for key, value in found.items()}
    return sorted(found) if isinstance(found, list) else found


def test_rabbitmq_imports_an_export_of_warren(
    server: RabbitMQServer, theirs: Exported, taken: Kept, tmp_path: Path
) -> None:
    ann = UserDefinition("ann", GUEST_HASH, ("management",))
    file, back = tmp_path / "ours.json", tmp_path / "back.json"
    file.write_bytes(exported({**taken, ann.key(): ann.value()}))
    server.ctl("delete_vhost", "other")
    server.ctl("delete_user", "tony")
    server.ctl("import_definitions", str(file))
    server.ctl("export_definitions", str(back))
    server.ctl("delete_user", "ann")
    found: Exported = json.loads(back.read_bytes())
    users = {user["name"]: user for user in found["users"]}
    assert users.pop("ann")["password_hash"] == ""
    assert ordered(list(users.values())) == ordered(theirs["users"])
    for section in ("policies", "parameters", "permissions", "topic_permissions"):
        assert ordered(found[section]) == ordered(theirs[section]), section
    metadata = [one["metadata"] for one in found["vhosts"] if one["name"] == "other"]
    assert metadata == [{"description": "for later", "tags": ["a", "b"]}]
