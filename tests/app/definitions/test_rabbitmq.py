"""Definitions between Warren and a real RabbitMQ, both ways: nothing of governance gets lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.core.definitions.support import NotingStore, restarted
from tests.support import rabbitmq
from tests.support.rabbitmq import RabbitMQServer
from tests.support.users import GUEST_HASH
from warrenmq.app.definitions.export import exported
from warrenmq.core.definitions.kinds import UserDefinition

from .support import Kept, document, imported

Exported = dict[str, Any]

COMMANDS: list[list[str]] = [
    ["add_user", "tony", "secret"],
    ["set_user_tags", "tony", "policymaker", "monitoring"],
    ["add_vhost", "other", "--description", "for later", "--tags", "a,b"],
    ["set_permissions", "-p", "other", "tony", "^t", "", ".*"],
    ["set_topic_permissions", "-p", "other", "tony", "amq.topic", "^{username}", ".*"],
    [
        "set_policy", "-p", "other", "--priority", "3", "--apply-to", "queues", "ttl", "^mail",
        '{"message-ttl": 60000}',
    ],
    ["set_policy", "-p", "other", "ha", "", '{"ha-mode": "all", "alternate-exchange": "x"}'],
    ["set_operator_policy", "-p", "other", "limit", "^mail", '{"max-length": 5}'],
    ["set_vhost_limits", "-p", "other", '{"max-queues": 5, "max-connections": -1}'],
    ["set_user_limits", "tony", '{"max-connections": 5, "max-channels": 10}'],
]  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[RabbitMQServer]:
    """One of its own: users and policies would be there for all other tests."""
    if reason := rabbitmq.missing():
        pytest.skip(reason)
    with RabbitMQServer() as found:
        for command in COMMANDS:
            found.ctl(*command)
        yield found


@pytest.fixture(scope="module")
def theirs(server: RabbitMQServer, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """What RabbitMQ has written."""
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
    found: Exported = json.loads(back.read_bytes())
    users = {user["name"]: user for user in found["users"]}
    assert users.pop("ann")["password_hash"] == ""
    assert ordered(list(users.values())) == ordered(theirs["users"])
    for section in ("policies", "parameters", "permissions", "topic_permissions"):
        assert ordered(found[section]) == ordered(theirs[section]), section
    metadata = [one["metadata"] for one in found["vhosts"] if one["name"] == "other"]
    assert metadata == [{"description": "for later", "tags": ["a", "b"]}]
