"""Durable definitions are restored at a start, deleted ones are not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conformance import frames
from tests.core.wire.support import TABLES
from tests.support.amqp import Client, take_turns
from tests.support.users import GUEST_HASH
from warrenmq.core.auth import AuthError, Permissions, Users, hashes
from warrenmq.core.broker import Broker
from warrenmq.core.clock import ManualClock
from warrenmq.core.definitions.decode import BadDefinition
from warrenmq.core.definitions.kinds import (
    BindingDefinition,
    Definition,
    ExchangeDefinition,
    OperatorPolicyDefinition,
    ParameterDefinition,
    PermissionDefinition,
    PolicyDefinition,
    QueueDefinition,
    TopicPermissionDefinition,
    UserDefinition,
    UserLimitsDefinition,
    VhostLimitsDefinition,
)
from warrenmq.core.errors import ChannelError
from warrenmq.core.vhosts import delete_vhost, put_vhost

from .support import NotingStore, made, new_broker, restarted, seen

PRICE = frames.Raw(b"D\2\0\0\0\x78")
RULES = {"x-message-ttl": 60_000, "x-max-length": 5, "x-dead-letter-exchange": "dead"}


@pytest.fixture(autouse=True)
def _cheap_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashes, "ARGON2_MEMORY_KIB", 8)
    monkeypatch.setattr(hashes, "ARGON2_TIME_COST", 1)


@pytest.fixture
def started() -> tuple[Broker, NotingStore]:
    return new_broker()


def declare_all(client: Client) -> None:
    client.call("Exchange.Declare", exchange="dead", exchange_type="fanout", durable=True)
    client.call(
        "Exchange.Declare", exchange="news", exchange_type="topic", durable=True, auto_delete=True,
        arguments={"alternate-exchange": "dead"},
    )  # fmt: skip
    client.call(
        "Exchange.Declare", exchange="inner", exchange_type="headers", durable=True, internal=True
    )
    client.declare("mail", durable=True, arguments=RULES)
    client.declare("short", durable=True, auto_delete=True)
    client.declare("", durable=True)
    client.call("Queue.Bind", queue="mail", exchange="news", routing_key="eu.#")
    client.call("Queue.Bind", queue="mail", exchange="amq.topic", routing_key="*.fr")
    client.call("Queue.Bind", queue="short", exchange="dead")
    client.call("Exchange.Bind", destination="inner", source="news", routing_key="#")
    client.call(
        "Queue.Bind", queue="short", exchange="inner",
        arguments={"x-match": "any", "price": PRICE, "n": 2**40},
    )  # fmt: skip


# -- what comes back


def test_durable_definitions_are_restored(started: tuple[Broker, NotingStore]) -> None:
    broker, store = started
    broker.add_vhost("other")
    broker.users.add("tony", "secret", ("management", "monitoring"))
    broker.users.set_permissions("tony", "other", "^t", "", ".*")
    broker.users.set_topic_permission("tony", "other", "amq.topic", "^{username}", "")
    broker.users.set_topic_permission("tony", "/", "amq.topic", "a", "b")
    broker.users.set_limits("tony", {"max-connections": 3})
    put_vhost(broker, "other", {"description": "for tests", "tags": ["a", "b"]})
    broker.vhosts["other"].limits.set({"max-queues": -1})
    policies = broker.vhosts["/"].policies
    policies.set(PolicyDefinition("/", "p", "^mail", "queues", -2, {"max-length": 3}))
    policies.set(OperatorPolicyDefinition("/", "p", "", "all", 5, {"expires": 60_000}))
    declare_all(Client(broker))
    again, _ = restarted(store)
    assert seen(again) == seen(broker)
    assert [queue for queue in seen(again)["vhosts"]["/"]["queues"] if queue[0] == "mail"]


def test_no_password_is_written(started: tuple[Broker, NotingStore]) -> None:
    broker, store = started
    broker.users.add("tony", "a-secret-nobody-knows")
    assert not [value for _, value in store.writes if value and b"a-secret-nobody" in value]
    assert sum(b"$argon2id$" in (value or b"") for _, value in store.writes) == 2


def test_queue_ids_are_restored_and_never_reused(started: tuple[Broker, NotingStore]) -> None:
    broker, store = started
    queue = broker.vhosts["/"].declare_queue("q", durable=True)
    again = restarted(store)[0].vhosts["/"]
    assert again.queues["q"].id == queue.id
    again.delete_queue("q")
    other = again.declare_queue("q", durable=True)
    assert (
        len({queue.id, other.id, again.declare_queue("t").id, again.make_reply_queue("r").id}) == 4
    )


@settings(max_examples=50)
@given(st.lists(st.tuples(st.sampled_from("abc"), TABLES), max_size=6))
def test_bindings_with_any_arguments_are_stored_and_deleted(wanted: list[tuple[str, Any]]) -> None:
    broker, store = restarted(made())
    vhost = broker.vhosts["/"]
    queue = vhost.declare_queue("q", durable=True)
    source = vhost.exchange("amq.direct")
    for key, arguments in wanted:
        vhost.bindings.add(source, queue, key, arguments)
    broker, store = restarted(store)
    again = broker.vhosts["/"]
    assert again.exchange("amq.direct").binding_count == source.binding_count
    for key, arguments in wanted:
        again.bindings.remove(again.exchange("amq.direct"), again.queues["q"], key, arguments)
    last = restarted(store)[0].vhosts["/"]
    assert last.exchange("amq.direct").binding_count == 0


# -- what does not


def test_transient_definitions_are_not_stored(started: tuple[Broker, NotingStore]) -> None:
    broker, store = started
    client = Client(broker)
    client.declare("kept", durable=True)
    before = len(store.writes)
    client.call("Exchange.Declare", exchange="loud", exchange_type="fanout")
    client.declare("gone")
    client.declare("mine", durable=True, exclusive=True)
    client.call("Queue.Bind", queue="gone", exchange="amq.direct")
    client.call("Queue.Bind", queue="mine", exchange="amq.direct")
    client.call("Queue.Bind", queue="kept", exchange="loud")
    client.call("Exchange.Bind", destination="loud", source="amq.fanout")
    client.call("Exchange.Bind", destination="amq.fanout", source="loud")
    client.call("Exchange.Delete", exchange="loud")
    client.call("Queue.Delete", queue="gone")
    assert len(store.writes) == before


@pytest.mark.parametrize(
    "end",
    [
        ("Queue.Delete", {"queue": "mail"}),
        ("Exchange.Delete", {"exchange": "news"}),
        ("Exchange.Delete", {"exchange": "inner"}),
        ("Queue.Unbind", {"queue": "mail", "exchange": "news", "routing_key": "eu.#"}),
        ("Exchange.Unbind", {"destination": "inner", "source": "news", "routing_key": "#"}),
    ],
    ids=str,
)
def test_deleted_definitions_are_not_restored_after_any_crash(
    started: tuple[Broker, NotingStore], end: tuple[str, dict[str, Any]]
) -> None:
    """A crash after any of its writes leaves a state that can be restored."""
    broker, store = started
    declare_all(Client(broker))
    kept = dict(store.definitions)
    before = len(store.writes)
    Client(broker).call(end[0], **end[1])
    assert seen(restarted(store)[0]) == seen(broker)
    assert len(store.writes) > before
    for key, value in store.writes[before:]:
        assert value is None
        del kept[key]
        restarted(NotingStore(kept))
    assert kept == store.definitions


def test_permissions_need_a_vhost_that_exists(started: tuple[Broker, NotingStore]) -> None:
    users = started[0].users
    with pytest.raises(AuthError, match="no vhost 'other'"):
        users.set_permissions("guest", "other", "", "", "")
    guest = users.get("guest")
    assert guest is not None and guest.permissions == {"/": Permissions(".*", ".*", ".*")}
    started[0].add_vhost("other")
    users.set_permissions("guest", "other", "", "", "")


# -- a new store, and a damaged one


def test_a_new_store_gets_one_administrator() -> None:
    store = NotingStore()
    broker = Broker(Users(), store=store, clock=ManualClock())
    assert not broker.restore()
    assert store.writes == []
    assert broker.set_up("root", hashes.hashed("secret")) == len(store.writes) == 3
    (user,) = restarted(store)[0].users
    assert (user.name, set(user.tags)) == ("root", {"administrator"})
    assert user.permissions == {"/": Permissions(".*", ".*", ".*")}


def set_aside(*definitions: Definition) -> list[str]:
    """Returns the reasons why some of these are set aside at a start; the others are in force."""
    broker, store = restarted(made(*definitions))
    assert "sound" in broker.vhosts["/"].queues
    assert restarted(store)[0].set_aside == broker.set_aside
    return list(broker.set_aside.values())


@pytest.mark.parametrize(
    ("definition", "complaint"),
    [
        (
            UserDefinition("tony", "secret", ()),
            "user 'tony': the password hash is not an argon2 hash in PHC form",
        ),
        (
            PermissionDefinition("tony", "/", "", "", ""),
            "permission of user 'tony' in vhost '/': no user 'tony'",
        ),
        (
            PermissionDefinition("guest", "v", "", "", ""),
            "permission of user 'guest' in vhost 'v': there is no vhost 'v'",
        ),
        (
            TopicPermissionDefinition("tony", "/", "x", "", ""),
            "topic permission of user 'tony' for exchange 'x' in vhost '/': "
            "there is no user 'tony'",
        ),
        (
            VhostLimitsDefinition("v", {}),
            "limits of vhost 'v': there is no vhost 'v'",
        ),
        (
            PolicyDefinition("v", "p", "", "all", 0, {"max-length": 1}),
            "policy 'p' in vhost 'v': there is no vhost 'v'",
        ),
        (
            ParameterDefinition("nope", "/", "p", "1"),  # of an earlier version, which kept them
            "nope parameter 'p' in vhost '/': component nope not found",
        ),
        (
            ExchangeDefinition("/", "x", "x-mystery", False, False, {}),
            "exchange 'x' in vhost '/': unknown exchange type 'x-mystery'",
        ),
        (
            ExchangeDefinition("/", "amq.topic", "topic", False, False, {}),
            "exchange 'amq.topic' in vhost '/': every vhost has it, it can't be redefined",
        ),
        (
            QueueDefinition("/", "q", 1, False, {"x-max-length": "many"}),
            "queue 'q' in vhost '/': invalid arg 'x-max-length' for queue 'q' in vhost '/': "
            "longstr given, a whole number is needed",
        ),
        (
            BindingDefinition("/", "amq.topic", False, "q", "k", {}),
            "binding of queue 'q' to exchange 'amq.topic' by key 'k' in vhost '/': "
            "there is no queue 'q'",
        ),
        (
            BindingDefinition("/", "x", True, "amq.topic", "k", {}),
            "binding of exchange 'amq.topic' to exchange 'x' by key 'k' in vhost '/': "
            "there is no exchange 'x'",
        ),
        (
            BindingDefinition("/", "amq.headers", True, "amq.topic", "", {"x-match": "none"}),
            "binding of exchange 'amq.topic' to exchange 'amq.headers' by key '' in vhost '/': "
            "Invalid x-match field value none; expected all, any, all-with-x, or any-with-x",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_bad_definition_is_named_and_the_others_are_in_force(
    definition: Definition, complaint: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert set_aside(QueueDefinition("/", "sound", 5, False, {}), definition) == [complaint]
    assert complaint in caplog.text


@pytest.mark.parametrize(
    ("definition", "complaint"),
    [
        (
            UserLimitsDefinition("guest", {"max-shoes": 1}),
            "limits of user 'guest': user 'guest' has no limit 'max-shoes'; its limits are "
            "max-connections and max-channels",
        ),
        (
            OperatorPolicyDefinition("/", "p", "(", "all", 0, {"max-length": 1}),
            "operator policy 'p' in vhost '/': pattern: pattern '(' is not a regular expression: "
            "missing closing parenthesis",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_bad_definition_that_restricts_rights_stops_the_start(
    definition: Definition, complaint: str
) -> None:
    store = made(definition)
    broker = Broker(Users(), store=store, clock=ManualClock())
    with pytest.raises(BadDefinition) as caught:
        broker.restore()
    assert str(caught.value) == complaint
    assert store.writes == []


def test_a_binding_set_aside_is_restored_with_its_queue() -> None:
    binding = BindingDefinition("/", "amq.topic", False, "q", "k", {})
    broker, store = restarted(made(binding))
    assert list(broker.set_aside) == [binding.key()]
    broker.vhosts["/"].declare_queue("q", durable=True)
    broker, _ = restarted(store)
    assert not broker.set_aside
    assert broker.vhosts["/"].exchange("amq.topic").binding_count == 1


GUEST = (
    UserDefinition("guest", GUEST_HASH, ("administrator",)),
    PermissionDefinition("guest", "/", ".*", ".*", ".*"),
)
LOST = BindingDefinition("/", "amq.topic", False, "q", "k", {})
OF_LOST_EXCHANGE = BindingDefinition("/", "x", False, "q", "k", {})
OF_LOST_VHOST = QueueDefinition("v", "q", 5, False, {})
Call = tuple[str, dict[str, Any]]
DECLARE_QUEUE: Call = ("Queue.Declare", {"queue": "q", "durable": True})
DELETE_QUEUE = ("Queue.Delete", {"queue": "q"})
BOUND = {"queue": "q", "exchange": "amq.topic", "routing_key": "k"}
DECLARE_EXCHANGE: Call = (
    "Exchange.Declare", {"exchange": "x", "exchange_type": "topic", "durable": True},
)  # fmt: skip
DELETE_EXCHANGE = ("Exchange.Delete", {"exchange": "x"})


@pytest.mark.parametrize(
    ("lost", "calls"),
    [
        (LOST, [DELETE_QUEUE]),
        (LOST, [DECLARE_QUEUE, DELETE_QUEUE]),
        (LOST, [DECLARE_QUEUE, ("Queue.Unbind", BOUND)]),
        (LOST, [DECLARE_QUEUE, ("Queue.Bind", BOUND), ("Queue.Unbind", BOUND)]),
        (OF_LOST_EXCHANGE, [DELETE_EXCHANGE]),
        (OF_LOST_EXCHANGE, [DECLARE_EXCHANGE, DELETE_EXCHANGE]),
        (OF_LOST_VHOST, []),
    ],
)
def test_definitions_set_aside_are_deleted_with_what_they_refer_to(
    lost: Definition, calls: list[Call]
) -> None:
    """Also while set aside: a later object of that name is another one."""
    store = made(lost, *GUEST)
    for _ in range(3):
        broker, store = restarted(store)
        assert list(broker.set_aside) == [lost.key()]
    client = Client(broker)
    for method, arguments in calls:
        assert client.call(method, **arguments).name == method + "Ok"
    put_vhost(broker, "v", {})
    delete_vhost(broker, "v")
    take_turns(broker)
    assert not broker.set_aside
    for _ in range(2):
        broker, store = restarted(store)
        assert not broker.set_aside and lost.key() not in store.definitions
        client = Client(broker)
        put_vhost(broker, "v", {})
        client.call(DECLARE_QUEUE[0], **DECLARE_QUEUE[1])
        client.call(DECLARE_EXCHANGE[0], **DECLARE_EXCHANGE[1])
        for name in ("amq.topic", "x"):
            assert broker.vhosts["/"].exchange(name).binding_count == 0


def test_definitions_are_stored_after_what_they_refer_to(
    started: tuple[Broker, NotingStore],
) -> None:
    """A log cut anywhere has no definition that refers to one behind the cut."""
    broker, store = started
    declare_all(Client(broker))
    kept: dict[bytes, bytes] = {}
    for key, value in store.writes:
        assert value is not None
        kept[key] = value
        if len(kept) > 3:
            assert not restarted(NotingStore(kept))[0].set_aside


# -- arguments that can't be kept


def test_arguments_that_cannot_be_stored_are_refused(started: tuple[Broker, NotingStore]) -> None:
    vhost, store = started[0].vhosts["/"], started[1]
    vhost.declare_queue("q", durable=True)
    before = len(store.writes)
    huge: Any = {"x-huge": 2**64}
    with pytest.raises(ChannelError, match="queue 'w' in vhost '/' can't be kept: table value"):
        vhost.declare_queue("w", durable=True, arguments=huge)
    with pytest.raises(ChannelError, match="binding of queue 'q' .* can't be kept"):
        vhost.bindings.add(vhost.exchange("amq.direct"), vhost.queues["q"], "", huge)
    assert vhost.exchange("amq.direct").binding_count == 0
    assert "w" not in vhost.queues
    assert len(store.writes) == before
    vhost.declare_queue("w", arguments=huge)


def test_removed_users_and_permissions_are_not_restored(
    started: tuple[Broker, NotingStore],
) -> None:
    broker, store = started
    first = dict(store.definitions)
    users = broker.users
    users.add("tony", "secret")
    users.set_permissions("tony", "/", "a", "b", "c")
    users.set_permissions("guest", "/", "", "", "")
    users.clear_permissions("tony", "/")
    assert restarted(store)[0].users.get("tony") is not None
    users.set_permissions("tony", "/", "a", "b", "c")
    users.remove("tony")
    users.set_permissions("guest", "/", ".*", ".*", ".*")
    assert store.definitions == first
