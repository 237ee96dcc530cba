"""A store that records definitions, a broker restored from it, and its visible state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from tests.core.wire.support import TABLES
from tests.support.users import GUEST_HASH
from warrenmq.core.auth import Users, hashed
from warrenmq.core.broker import Broker
from warrenmq.core.clock import ManualClock
from warrenmq.core.definitions.kinds import (
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
from warrenmq.core.message.equivalence import comparable
from warrenmq.core.store.memory import MemoryStore

TEXTS = st.text(max_size=20)
IDS = st.integers(0, 2**63 - 1)
PRIORITIES = st.integers(-(2**63), 2**63 - 1)
DEFINITIONS: st.SearchStrategy[Definition] = st.one_of(
    st.builds(VhostDefinition, TEXTS, TABLES),
    st.builds(UserDefinition, TEXTS, TEXTS, st.lists(TEXTS, max_size=3).map(tuple)),
    st.builds(PermissionDefinition, TEXTS, TEXTS, TEXTS, TEXTS, TEXTS),
    st.builds(ExchangeDefinition, TEXTS, TEXTS, TEXTS, st.booleans(), st.booleans(), TABLES),
    st.builds(QueueDefinition, TEXTS, TEXTS, IDS, st.booleans(), TABLES),
    st.builds(BindingDefinition, TEXTS, TEXTS, st.booleans(), TEXTS, TEXTS, TABLES),
    st.builds(TopicPermissionDefinition, TEXTS, TEXTS, TEXTS, TEXTS, TEXTS),
    st.builds(PolicyDefinition, TEXTS, TEXTS, TEXTS, TEXTS, PRIORITIES, TABLES),
    st.builds(OperatorPolicyDefinition, TEXTS, TEXTS, TEXTS, TEXTS, PRIORITIES, TABLES),
    st.builds(VhostLimitsDefinition, TEXTS, TABLES),
    st.builds(UserLimitsDefinition, TEXTS, TABLES),
    st.builds(ParameterDefinition, TEXTS, TEXTS, TEXTS, TEXTS),
    st.builds(GlobalParameterDefinition, TEXTS, TEXTS),
)


class NotingStore(MemoryStore):
    """Records each `define` in `writes`; commit numbers are its length."""

    def __init__(self, definitions: Mapping[bytes, bytes] | None = None) -> None:
        super().__init__()
        self.definitions = dict(definitions or {})
        self.writes: list[tuple[bytes, bytes | None]] = []

    def define(self, key: bytes, value: bytes | None) -> int:
        super().define(key, value)
        self.writes.append((key, value))
        return len(self.writes)

    def barrier(self) -> int:
        return len(self.writes)


def new_broker() -> tuple[Broker, NotingStore]:
    """Returns a broker as the first start makes it, with the administrator `guest`, and its
    store."""
    store = NotingStore()
    broker = Broker(Users(), store=store, clock=ManualClock())
    assert not broker.restore()
    broker.set_up("guest", hashed("guest"))
    return broker, store


def restarted(store: NotingStore) -> tuple[Broker, NotingStore]:
    """Returns a broker as the next start makes it, and its store; nothing may have been written."""
    again = NotingStore(store.definitions)
    broker = Broker(Users(), store=again, clock=ManualClock())
    assert broker.restore()
    assert again.writes == []
    assert again.definitions == store.definitions
    return broker, again


def made(*definitions: Definition) -> NotingStore:
    """Returns a store with these definitions in `/`, and the user `guest`."""
    found = [VhostDefinition("/"), UserDefinition("guest", GUEST_HASH, ()), *definitions]
    return NotingStore({one.key(): one.value() for one in found})


def seen(broker: Broker) -> dict[str, Any]:
    """Returns the durable state, as clients and operators see it."""
    users = {
        user.name: (
            broker.users.password_hash(user.name), user.tags, user.permissions,
            user.topic_permissions, user.limits,
        )
        for user in broker.users
    }  # fmt: skip
    return {"users": users, "vhosts": {name: _vhost(broker, name) for name in broker.vhosts}}


def _vhost(broker: Broker, name: str) -> dict[str, Any]:
    vhost = broker.vhosts[name]
    return {
        "properties": vhost.properties,
        "limits": vhost.limits.as_table(),
        "policies": vhost.policies.records(),
        "operator policies": vhost.policies.operator_records(),
        "queues": [
            (queue.name, queue.id, queue.auto_delete, comparable(queue.arguments), queue.rules)
            for queue in vhost.queues.values()
            if queue.durable
        ],
        "exchanges": [
            (one.name, one.type_name, one.auto_delete, one.internal, comparable(one.arguments))
            for one in vhost.exchanges.values()
            if one.durable
        ],
        "bindings": {
            one.name: [
                (binding.destination.name, binding.routing_key, comparable(binding.arguments))
                for binding in one.bindings()
                if getattr(binding.destination, "durable", False)
            ]
            for one in vhost.exchanges.values()
            if one.durable
        },
    }
