"""Policies in force: which one applies, at once and after a restart."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tests.core.definitions.support import new_broker, restarted
from tests.support.amqp import Client, make_broker
from warrenmq.core.broker import Broker
from warrenmq.core.definitions.kinds import PolicyDefinition
from warrenmq.core.errors import ChannelError
from warrenmq.core.policy.keys import PolicyError
from warrenmq.core.queue.classic import ClassicQueue
from warrenmq.core.queue.rules import Rules

from .support import clear, in_force, policies, put


def rules(broker: Broker, queue: str) -> Rules | None:
    return broker.vhosts["/"].queues[queue].rules


# -- which one


def test_a_policy_for_another_queue_type_is_skipped(broker: Broker, client: Client) -> None:
    client.declare("classic")
    client.declare("quorum", durable=True, arguments={"x-queue-type": "quorum"})
    put(broker, "memory", priority=1, max_in_memory_length=5, max_length=5)
    put(broker, "plain", max_length=7)
    assert in_force(broker, "classic") == ("plain", None)
    assert in_force(broker, "quorum") == ("memory", None)


# -- who is touched


def test_policies_do_not_apply_to_reply_queues(broker: Broker, client: Client) -> None:
    put(broker, "p", message_ttl=0)
    client.consume("amq.rabbitmq.reply-to", no_ack=True)
    (replies,) = broker.vhosts["/"].replies.values()
    assert replies.rules is None


def test_only_queues_whose_rules_change_are_updated(
    broker: Broker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    touched: list[str] = []
    apply = ClassicQueue.apply

    def note(queue: ClassicQueue, found: Rules | None) -> None:
        touched.append(queue.name)
        apply(queue, found)

    monkeypatch.setattr(ClassicQueue, "apply", note)
    for queue in ("a", "b", "ab"):
        client.declare(queue)
    put(broker, "p", "a", max_length=5)
    assert touched == ["a", "ab"]
    put(broker, "weaker", "b", priority=-1, max_length=6)
    assert touched[2:] == ["b"]
    put(broker, "p", "^a", max_length=5)  # nothing new for those
    put(broker, "other", "a", priority=1, max_length=5)  # nor here
    assert touched[3:] == []
    put(broker, "p", "^b", max_length=7)
    assert touched[3:] == ["b"]
    clear(broker, "other")
    assert touched[4:] == ["a", "ab"]


def test_policies_forget_deleted_targets(broker: Broker, client: Client) -> None:
    client.declare("mail")
    client.call("Exchange.Declare", exchange="x", exchange_type="fanout")
    put(broker, "p", "mail|x", max_length=5)
    vhost = broker.vhosts["/"]
    queue, exchange = vhost.queues["mail"], vhost.exchanges["x"]
    assert policies(broker).of(queue) and policies(broker).of(exchange)
    client.call("Queue.Delete", queue="mail")
    client.call("Exchange.Delete", exchange="x")
    assert policies(broker).of(queue) is policies(broker).of(exchange) is None
    client.declare("mail")
    assert rules(broker, "mail") == Rules(max_length=5)


# -- alternate exchanges


def test_declared_alternate_overrides_the_policy(broker: Broker, client: Client) -> None:
    client.call(
        "Exchange.Declare", exchange="news", exchange_type="direct",
        arguments={"alternate-exchange": "a"},
    )  # fmt: skip
    put(broker, "p", "^news$", alternate_exchange="b")
    news = broker.vhosts["/"].exchanges["news"]
    assert news.alternate == "a"
    clear(broker, "p")
    assert news.alternate == "a"


def test_policies_of_predeclared_exchanges_survive_a_restart() -> None:
    broker, store = new_broker()
    put(broker, "p", "^amq.topic$", alternate_exchange="a")
    again, _ = restarted(store)
    assert again.vhosts["/"].exchanges["amq.topic"].alternate == "a"


# -- what can't be


def test_a_bad_policy_is_named_and_changes_nothing() -> None:
    broker, store = new_broker()
    Client(broker).declare("mail")
    put(broker, "p", max_length=5)
    before = len(store.writes)
    bad: dict[str, dict[str, Any]] = {
        "pattern: pattern '(' is not a regular expression: missing closing parenthesis": {
            "pattern": "("
        },
        "pattern: a pattern has 65536 bytes, at most 65535": {"pattern": "a" * 65_536},
        "apply-to: 'topics' is not one of all, exchanges, queues, classic_queues, "
        "quorum_queues, streams": {"apply_to": "topics"},
        "priority: 9223372036854775808 does not fit into 64 bits": {"priority": 2**63},
        "max-length: -1 is out of range 0 to 9223372036854775807": {"max_length": -1},
    }
    for complaint, wrong in bad.items():
        with pytest.raises(PolicyError) as caught:
            put(broker, "p", **{"max_length": 4, **wrong})
        assert str(caught.value) == f"policy 'p' in vhost '/': {complaint}"
    with pytest.raises(PolicyError, match="it needs a name"):
        put(broker, "", max_length=5)
    with pytest.raises(PolicyError, match="operator policy 'p' in vhost '/': overflow"):
        put(broker, "p", operator=True, overflow="none")
    assert rules(broker, "mail") == Rules(max_length=5)
    assert len(store.writes) == before


def test_name_too_long_to_be_stored_is_refused(broker: Broker) -> None:
    with pytest.raises(ChannelError, match="can't be kept"):
        put(broker, "p" * 65_536, max_length=5)
    assert policies(broker).records() == []


def test_runaway_pattern_is_matched_in_linear_time(broker: Broker, client: Client) -> None:
    client.declare("a" * 250)
    put(broker, "p", "(a*)*$b", max_length=5)
    assert in_force(broker, "a" * 250) == (None, None)


def test_keys_without_effect_are_warned_of(
    broker: Broker, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    client.declare("mail")
    with caplog.at_level(logging.WARNING):
        put(broker, "ha", max_length=5, ha_mode="all", ha_sync_mode="automatic")
    assert [record.getMessage() for record in caplog.records] == [
        "policy 'ha' in vhost '/': key 'ha-mode' is stored and has no effect here",
        "policy 'ha' in vhost '/': key 'ha-sync-mode' is stored and has no effect here",
    ]
    assert rules(broker, "mail") == Rules(max_length=5)


# -- what is kept


def test_policies_are_restored_and_in_force() -> None:
    broker, store = new_broker()
    client = Client(broker)
    client.declare("mail", durable=True, arguments={"x-max-length": 9})
    client.call("Exchange.Declare", exchange="x", exchange_type="fanout", durable=True)
    assert put(broker, "p", "mail|x", priority=-4, max_length=5, alternate_exchange="a")
    assert put(broker, "o", operator=True, apply_to="queues", message_ttl=60)
    assert put(broker, "gone", max_length=1)
    assert clear(broker, "gone")
    again, _ = restarted(store)
    assert rules(again, "mail") == Rules(max_length=5, message_ttl_ms=60)
    assert again.vhosts["/"].exchanges["x"].alternate == "a"
    assert in_force(again, "mail") == ("p", "o")
    assert policies(again).records() == policies(broker).records()
    assert policies(again).operator_records() == policies(broker).operator_records()
    clear(again, "p")
    clear(again, "o", operator=True)
    assert rules(again, "mail") == Rules(max_length=9)
    assert again.vhosts["/"].exchanges["x"].alternate is None


def test_setting_an_equal_policy_writes_nothing() -> None:
    broker, store = new_broker()
    assert put(broker, "p", max_length=5)
    before = len(store.writes)
    assert not put(broker, "p", max_length=5)
    assert len(store.writes) == before
    assert not put(broker, "p", max_length=6)
    assert len(store.writes) == before + 1


def test_a_newer_key_is_not_ignored_at_a_start() -> None:
    _, store = new_broker()
    found = PolicyDefinition("/", "p", "", "all", 0, {"max-colour": 5})
    store.define(found.key(), found.value())
    again = make_broker(store)
    assert again.restore()
    assert again.set_aside == {found.key(): "policy 'p' in vhost '/': max-colour: unknown key"}


# -- the hub's own


@pytest.mark.parametrize(
    "broken",
    [{"expires": 1}, {"delivery_limit": 1}, {"consumer_timeout": 1}],
)
def test_policies_that_would_delete_hub_queues_skip_them(
    broker: Broker, client: Client, broken: dict[str, Any]
) -> None:
    vhost = broker.vhosts["/"]
    vhost.declare_queue("hub.dead", durable=True)
    client.declare("mail")
    put(broker, "all", **broken)
    assert (in_force(broker, "mail"), in_force(broker, "hub.dead")) == (("all", None), (None, None))


def test_limits_apply_to_hub_queues_without_arguments(broker: Broker) -> None:
    """A shorter time to live would bring what waits for its retry home too early, and a key for
    dead letters elsewhere."""
    vhost = broker.vhosts["/"]
    vhost.declare_queue("hub.dead", durable=True)
    vhost.declare_queue("hub.retry.5s", durable=True, arguments={"x-message-ttl": 5_000})
    vhost.declare_exchange(
        "hub.topics", "direct", durable=True, auto_delete=False, internal=False, arguments={}
    )
    put(broker, "all", message_ttl=100, dead_letter_routing_key="elsewhere")
    put(broker, "top", operator=True, max_length=10)
    put(broker, "other", apply_to="exchanges", alternate_exchange="amq.fanout")
    assert rules(broker, "hub.dead") == Rules(
        message_ttl_ms=100, dead_letter_routing_key="elsewhere", max_length=10
    )
    assert rules(broker, "hub.retry.5s") == Rules(message_ttl_ms=5_000)
    assert vhost.exchanges["hub.topics"].alternate is None
