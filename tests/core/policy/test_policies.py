"""Policies in force: who gets which, at once and after a restart, and nobody else is touched."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tests.core.definitions.support import new_broker, restarted
from tests.support.amqp import Client, make_broker, names, take_turns
from warrenmq.core.broker import Broker
from warrenmq.core.definitions.kinds import PolicyDefinition
from warrenmq.core.errors import ChannelError
from warrenmq.core.policy.keys import PolicyError
from warrenmq.core.queue.classic import ClassicQueue
from warrenmq.core.queue.rules import Rules

from .support import clear, in_force, policies, put


@pytest.fixture
def broker() -> Broker:
    return make_broker()


@pytest.fixture
def client(broker: Broker) -> Client:
    return Client(broker)


def rules(broker: Broker, queue: str) -> Rules | None:
    return broker.vhosts["/"].queues[queue].rules


# -- which one


def test_the_highest_priority_wins(broker: Broker, client: Client) -> None:
    client.declare("mail")
    put(broker, "low", priority=-1, max_length=1)
    put(broker, "high", priority=3, max_length=3)
    put(broker, "middle", priority=2, max_length=2)
    assert rules(broker, "mail") == Rules(max_length=3)
    clear(broker, "high")
    assert in_force(broker, "mail") == ("middle", None)
    clear(broker, "middle")
    assert in_force(broker, "mail") == ("low", None)
    clear(broker, "low")
    assert (in_force(broker, "mail"), rules(broker, "mail")) == ((None, None), None)


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_of_equal_priorities_the_first_name_wins(
    broker: Broker, client: Client, order: str
) -> None:
    client.declare("mail")
    for name in order:
        put(broker, name, max_length=ord(name))
    assert in_force(broker, "mail") == ("a", None)


def test_a_pattern_may_stand_anywhere_in_the_name(broker: Broker, client: Client) -> None:
    for queue in ("mail", "email", "post"):
        client.declare(queue)
    put(broker, "p", "^mail$|os", max_length=1)
    assert [in_force(broker, queue)[0] for queue in ("mail", "email", "post")] == ["p", None, "p"]


def test_an_empty_pattern_is_for_all(broker: Broker, client: Client) -> None:
    client.declare("mail")
    put(broker, "p", "", max_length=1)
    assert in_force(broker, "mail") == ("p", None)


@pytest.mark.parametrize(
    ("apply_to", "ruled"),
    [
        ("all", "classic quorum stream exchange"),
        ("queues", "classic quorum stream"),
        ("classic_queues", "classic"),
        ("quorum_queues", "quorum"),
        ("streams", "stream"),
        ("exchanges", "exchange"),
    ],
)
def test_apply_to(broker: Broker, client: Client, apply_to: str, ruled: str) -> None:
    for kind in ("classic", "quorum", "stream"):
        client.declare(kind, durable=True, arguments={"x-queue-type": kind})
    client.call("Exchange.Declare", exchange="exchange", exchange_type="fanout")
    put(broker, "p", apply_to=apply_to, max_length_bytes=5)
    vhost = broker.vhosts["/"]
    targets: dict[str, Any] = {**vhost.queues, "exchange": vhost.exchanges["exchange"]}
    assert [name for name in targets if policies(broker).of(targets[name])] == ruled.split()


def test_a_policy_for_another_type_leaves_room_for_the_next(broker: Broker, client: Client) -> None:
    client.declare("classic")
    client.declare("quorum", durable=True, arguments={"x-queue-type": "quorum"})
    put(broker, "memory", priority=1, max_in_memory_length=5, max_length=5)
    put(broker, "plain", max_length=7)
    assert in_force(broker, "classic") == ("plain", None)
    assert in_force(broker, "quorum") == ("memory", None)


def test_an_operator_policy_stands_beside(broker: Broker, client: Client) -> None:
    client.declare("mail", arguments={"x-max-length": 6})
    put(broker, "limit", operator=True, max_length=5, message_ttl=60)
    assert rules(broker, "mail") == Rules(max_length=5, message_ttl_ms=60)
    put(broker, "mine", max_length=4, message_ttl=70)
    assert rules(broker, "mail") == Rules(max_length=4, message_ttl_ms=60)
    assert in_force(broker, "mail") == ("mine", "limit")
    clear(broker, "limit", operator=True)
    assert rules(broker, "mail") == Rules(max_length=4, message_ttl_ms=70)
    assert not clear(broker, "limit", operator=True)
    assert in_force(broker, "mail") == ("mine", None)


def test_one_name_for_both_sorts(broker: Broker, client: Client) -> None:
    client.declare("mail")
    put(broker, "p", max_length=4)
    put(broker, "p", operator=True, max_length=3)
    clear(broker, "p")
    assert (in_force(broker, "mail"), rules(broker, "mail")) == ((None, "p"), Rules(max_length=3))


# -- who is touched


def test_queues_that_come_later_have_it_from_the_start(broker: Broker, client: Client) -> None:
    put(broker, "p", max_length=1)
    client.declare("mail")
    client.declare("own", exclusive=True)
    client.declare("limited", arguments={"x-max-length": 0})
    generated = client.call("Queue.Declare", queue="")["queue"]
    assert [rules(broker, queue) for queue in ("mail", "own", generated)] == [
        Rules(max_length=1)
    ] * 3
    assert rules(broker, "limited") == Rules(max_length=0)


def test_a_queue_is_declared_again_by_its_arguments(broker: Broker, client: Client) -> None:
    client.declare("mail", arguments={"x-max-length": 6})
    put(broker, "p", max_length=5, dead_letter_exchange="")
    client.declare("mail", arguments={"x-max-length": 6})
    (close,) = client.send("Queue.Declare", queue="mail", arguments={"x-max-length": 5})
    assert close["reply_code"] == 406


def test_reply_queues_have_none(broker: Broker, client: Client) -> None:
    put(broker, "p", message_ttl=0)
    client.consume("amq.rabbitmq.reply-to", no_ack=True)
    (replies,) = broker.vhosts["/"].replies.values()
    assert replies.rules is None


def test_only_those_are_touched_whose_rules_change(
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


def test_what_is_gone_is_forgotten(broker: Broker, client: Client) -> None:
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


def test_another_virtual_host_has_its_own(broker: Broker) -> None:
    other = broker.add_vhost("other")
    other.declare_queue("mail")
    put(broker, "p", max_length=5)
    assert other.queues["mail"].rules is None
    assert other.policies.records() == []


# -- alternate exchanges


def declare_exchanges(client: Client) -> None:
    client.call("Exchange.Declare", exchange="news", exchange_type="direct")
    for dead_letter in "ab":
        client.call("Exchange.Declare", exchange=dead_letter, exchange_type="fanout")
        client.declare(f"of-{dead_letter}")
        client.call("Queue.Bind", queue=f"of-{dead_letter}", exchange=dead_letter)


def unrouted(client: Client) -> tuple[int, int]:
    """Publishes one that `news` has no binding for; how many both queues have then."""
    client.publish(b"m", exchange="news", routing_key="k")
    return client.messages("of-a"), client.messages("of-b")


def test_an_alternate_exchange_comes_changes_and_goes(broker: Broker, client: Client) -> None:
    declare_exchanges(client)
    assert unrouted(client) == (0, 0)
    put(broker, "p", "^news$", alternate_exchange="a")
    assert unrouted(client) == (1, 0)
    put(broker, "p", "^news$", alternate_exchange="b")
    assert unrouted(client) == (1, 1)
    clear(broker, "p")
    assert unrouted(client) == (1, 1)


def test_an_exchange_keeps_the_alternate_that_it_was_declared_with(
    broker: Broker, client: Client
) -> None:
    client.call(
        "Exchange.Declare", exchange="news", exchange_type="direct",
        arguments={"alternate-exchange": "a"},
    )  # fmt: skip
    put(broker, "p", "^news$", alternate_exchange="b")
    news = broker.vhosts["/"].exchanges["news"]
    assert news.alternate == "a"
    clear(broker, "p")
    assert news.alternate == "a"


def test_an_alternate_that_appears_later_is_found(broker: Broker, client: Client) -> None:
    client.call("Exchange.Declare", exchange="news", exchange_type="direct")
    put(broker, "p", "^news$", alternate_exchange="late")
    client.publish(b"m", exchange="news", routing_key="k")
    client.call("Exchange.Declare", exchange="late", exchange_type="fanout")
    client.declare("mail")
    client.call("Queue.Bind", queue="mail", exchange="late")
    client.publish(b"m", exchange="news", routing_key="k")
    assert client.messages("mail") == 1
    client.call("Exchange.Delete", exchange="late")
    (returned,) = client.publish(b"m", exchange="news", routing_key="k", mandatory=True)
    assert returned.name == "Basic.Return"


def test_exchanges_that_come_later_have_their_alternate(broker: Broker, client: Client) -> None:
    put(broker, "p", "^news$", alternate_exchange="a")
    declare_exchanges(client)
    assert unrouted(client) == (1, 0)
    client.call("Exchange.Delete", exchange="news")
    clear(broker, "p")
    client.call("Exchange.Declare", exchange="news", exchange_type="direct")
    assert unrouted(client) == (1, 0)


def test_predeclared_exchanges_have_theirs_after_a_restart() -> None:
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
        "pattern: pattern '(' is not a regular expression: missing ): (": {"pattern": "("},
        "pattern: a pattern has 257 characters, at most 256": {"pattern": "a" * 257},
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


def test_a_name_too_long_to_be_kept_is_refused(broker: Broker) -> None:
    with pytest.raises(ChannelError, match="can't be kept"):
        put(broker, "p" * 65_536, max_length=5)
    assert policies(broker).records() == []


def test_a_pattern_takes_time_in_its_name_only(broker: Broker, client: Client) -> None:
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
        "policy 'ha' in vhost '/': key 'ha-mode' is kept and has no effect here",
        "policy 'ha' in vhost '/': key 'ha-sync-mode' is kept and has no effect here",
    ]
    assert rules(broker, "mail") == Rules(max_length=5)


# -- what is kept


def test_policies_come_back_and_are_in_force() -> None:
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


def test_setting_it_again_writes_nothing() -> None:
    broker, store = new_broker()
    assert put(broker, "p", max_length=5)
    before = len(store.writes)
    assert not put(broker, "p", max_length=5)
    assert len(store.writes) == before
    assert not put(broker, "p", max_length=6)
    assert len(store.writes) == before + 1


def test_a_policy_of_a_vhost_that_goes_is_ended() -> None:
    broker, store = new_broker()
    put(broker, "p", max_length=5)
    put(broker, "p", operator=True, max_length=5)
    kept = dict(store.definitions)
    policies(broker).clear_all()
    assert len(store.definitions) == len(kept) - 2
    assert policies(broker).records() == []
    assert policies(broker).operator_records() == []


def test_a_newer_key_is_not_ignored_at_a_start() -> None:
    _, store = new_broker()
    found = PolicyDefinition("/", "p", "", "all", 0, {"max-colour": 5})
    store.define(found.key(), found.value())
    again = make_broker(store)
    assert again.restore()
    assert again.set_aside == {found.key(): "policy 'p' in vhost '/': max-colour: unknown key"}


def test_a_connection_goes_on_where_it_is(broker: Broker, client: Client) -> None:
    """A route that is remembered for a publish does not outlive what it was made from."""
    client.declare("mail")
    client.call("Confirm.Select")
    assert names(client.publish(b"1", routing_key="mail")) == ["Basic.Ack"]
    put(broker, "p", max_length=1, overflow="reject-publish")
    assert names(client.publish(b"2", routing_key="mail")) == ["Basic.Nack"]
    put(broker, "p", max_length=2, overflow="reject-publish")
    assert names(client.publish(b"3", routing_key="mail")) == ["Basic.Ack"]
    clear(broker, "p")
    assert names(client.publish(b"4", routing_key="mail")) == ["Basic.Ack"]
    take_turns(broker)
    assert client.messages("mail") == 3


# -- the hub's own


@pytest.mark.parametrize(
    "broken",
    [{"expires": 1}, {"delivery_limit": 1}, {"consumer_timeout": 1}],
)
def test_what_would_break_the_hubs_queues_is_for_others(
    broker: Broker, client: Client, broken: dict[str, Any]
) -> None:
    vhost = broker.vhosts["/"]
    vhost.declare_queue("hub.dead", durable=True)
    client.declare("mail")
    put(broker, "all", **broken)
    assert (in_force(broker, "mail"), in_force(broker, "hub.dead")) == (("all", None), (None, None))


def test_the_hubs_queues_can_be_bounded_but_for_those_with_arguments(broker: Broker) -> None:
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
