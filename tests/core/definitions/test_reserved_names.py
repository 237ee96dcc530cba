"""Queues and exchanges with reserved names that are not the hub's are renamed."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.core.life import Life
from warrenmq.core.definitions.keys import DefinitionKind, key_of
from warrenmq.core.definitions.kinds import ExchangeDefinition
from warrenmq.core.definitions.reserved_names import Named, rename_reserved
from warrenmq.core.local.publisher import LocalPublisher
from warrenmq.core.message.model import Properties, Table

LONG = "hub." + "\N{SNOWMAN}" * 83
BINDINGS = [
    ("hub.jobs", "hub.jobs"), ("hub.topics", "hub.jobs"), ("hub.topics", "hub.topics"),
    ("hub.jobs", "hub.own"), ("amq.direct", "hub.jobs"),
]  # fmt: skip


class OldLife(Life):
    """Starts with what it finds, as the server does."""

    def before_restore(self) -> None:
        rename_reserved(self.store, is_own)

    def publish_as_hub(self, body: bytes, exchange: str, properties: Properties) -> None:
        """Clients can't publish to its exchanges."""
        publisher = LocalPublisher(self.broker, self.broker.vhosts["/"], None)
        publisher.publish(exchange, "k", properties, body)


def is_own(found: Named) -> bool:
    return found.name == ("hub.topics" if isinstance(found, ExchangeDefinition) else "hub.own")


@pytest.fixture
def life(tmp_path: Path) -> OldLife:
    life = OldLife(tmp_path)
    vhost = life.broker.vhosts["/"]
    for name in ("hub.jobs", "renamed.hub.jobs", "hub.own", "hub.topics", "github.x", LONG):
        vhost.declare_queue(name, durable=True)
    for name, type_name in (("hub.jobs", "x-delayed-message"), ("hub.topics", "direct")):
        arguments: Table = {"x-delayed-type": "direct"} if name == "hub.jobs" else {}
        vhost.declare_exchange(
            name, type_name, durable=True, auto_delete=False, internal=False, arguments=arguments
        )
    for source, queue in BINDINGS:
        vhost.bindings.add(vhost.exchange(source), vhost.queue(queue), "k", {})
    life.publish(b"work", "hub.jobs")
    life.publish_as_hub(
        b"later", "hub.jobs", Properties(delivery_mode=2, headers={"x-delay": 1_000})
    )
    return life


def test_a_renamed_queue_keeps_messages_and_bindings(
    life: OldLife, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        life.restart()
    vhost = life.broker.vhosts["/"]
    assert set(vhost.queues) == {
        "renamed.hub.jobs", "renamed.hub.jobs-2", "hub.own", "github.x", "renamed.hub.topics",
        "renamed." + LONG.encode()[:239].decode(errors="ignore"),
    }  # fmt: skip
    assert "hub.jobs" not in vhost.exchanges and "hub.topics" in vhost.exchanges
    assert "queue 'hub.jobs' in vhost '/' has a reserved name" in caplog.text
    assert "'renamed.hub.jobs-2'" in caplog.text
    assert life.bodies("renamed.hub.jobs-2") == [b"work"]
    for exchange in ("hub.topics", "amq.direct", "renamed.hub.jobs"):
        life.publish_as_hub(exchange.encode(), exchange, Properties())
    life.turns(3, each_ms=1_000)
    # Among them what waited in the exchange.
    own = [b"renamed.hub.jobs", b"later"]
    assert life.bodies("renamed.hub.jobs-2") == [b"hub.topics", b"amq.direct", *own]
    assert life.bodies("hub.own") == own
    assert life.bodies("renamed.hub.topics") == []


def test_renaming_again_changes_nothing(life: OldLife) -> None:
    life.restart()
    before = dict(life.store.definitions)
    life.crash()
    assert dict(life.store.definitions) == before


def test_queues_of_the_hub_are_not_renamed(tmp_path: Path) -> None:
    life = OldLife(tmp_path)
    life.broker.vhosts["/"].declare_queue("hub.own", durable=True)
    before = dict(life.store.definitions)
    life.restart()
    assert dict(life.store.definitions) == before


def test_a_damaged_definition_does_not_stop_the_start(tmp_path: Path) -> None:
    life = OldLife(tmp_path)
    key = key_of(DefinitionKind.QUEUE, "/", "hub.jobs")
    life.store.define(key, b"\x01damaged")
    life.restart()
    assert list(life.broker.set_aside) == [key]
