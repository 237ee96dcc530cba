"""Definitions that are kept, and files that change them."""

from __future__ import annotations

import json
from typing import Any

from tests.support.users import GUEST_HASH
from warrenmq.app.definitions.document import parse
from warrenmq.app.definitions.export import exported
from warrenmq.app.definitions.left_out import LeftOut
from warrenmq.app.definitions.merge import merged
from warrenmq.core.definitions.kinds import (
    BindingDefinition,
    Definition,
    ExchangeDefinition,
    OperatorPolicyDefinition,
    PermissionDefinition,
    PolicyDefinition,
    QueueDefinition,
    TopicPermissionDefinition,
    UserDefinition,
    UserLimitsDefinition,
    VhostDefinition,
    VhostLimitsDefinition,
)

Kept = dict[bytes, bytes]

QUEUE = QueueDefinition("/", "mail", 77, False, {"x-max-length": 5})
ALL: list[Definition] = [
    VhostDefinition("/"),
    VhostDefinition("spare", {"description": "for later", "tags": ["a", "b"]}),
    UserDefinition("guest", GUEST_HASH, ("administrator",)),
    UserDefinition("tony", GUEST_HASH, ()),
    PermissionDefinition("guest", "/", ".*", ".*", ".*"),
    PermissionDefinition("guest", "spare", ".*", ".*", ".*"),
    PermissionDefinition("tony", "/", "", "^mail$", ""),
    ExchangeDefinition("/", "news", "topic", True, False, {"alternate-exchange": "amq.fanout"}),
    ExchangeDefinition("spare", "x", "headers", False, True, {}),
    QUEUE,
    QueueDefinition("/", "amq.gen-abc", 78, True, {}),
    BindingDefinition("/", "news", False, "mail", "eu.#", {}),
    BindingDefinition("/", "amq.fanout", True, "news", "", {"n": 5}),
    BindingDefinition("spare", "x", True, "amq.topic", "", {"x-match": "any", "h": None}),
    TopicPermissionDefinition("tony", "/", "amq.topic", "^{username}", ".*"),
    TopicPermissionDefinition("guest", "spare", "", "a", "b"),
    PolicyDefinition(
        "/", "short", "^mail", "queues", 3, {"max-length": 5, "overflow": "drop-head"}
    ),
    PolicyDefinition("spare", "short", "", "all", -1, {"message-ttl": 0}),
    OperatorPolicyDefinition("/", "short", "^mail", "queues", 0, {"max-length": 4}),
    OperatorPolicyDefinition("spare", "o", "", "all", 0, {"expires": 4}),
    VhostLimitsDefinition("/", {"max-connections": -1, "max-queues": 9}),
    VhostLimitsDefinition("spare", {"max-queues": 9}),
    UserLimitsDefinition("tony", {"max-channels": 9}),
]


def kept(definitions: list[Definition] = ALL) -> Kept:
    return {one.key(): one.value() for one in definitions}


def document(current: Kept) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(exported(current))
    return found


def imported(current: Kept, file: dict[str, Any] | bytes) -> Kept:
    """What is kept after it; raises as an import does."""
    raw = file if isinstance(file, bytes) else json.dumps(file).encode()
    after = dict(current)
    left_out = LeftOut()
    changes = merged(current, parse(raw, left_out), left_out)
    assert not left_out.sentences
    for key, value in changes.items():
        if value is None:
            del after[key]
        else:
            assert after.get(key) != value, "nothing changes"
            after[key] = value
    return after


def gone(before: Kept, after: Kept) -> set[bytes]:
    return before.keys() - after.keys()
