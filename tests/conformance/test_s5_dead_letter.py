"""amqp.md section 5: where dead letters go, and their headers."""

from __future__ import annotations

from typing import Any

import pytest

from .raw import Channel, Content

pytestmark = pytest.mark.promise

Fields = dict[str, Any]
turned_round = pytest.mark.differs("3.10 turns the older entries round at each death")


def graveyard(channel: Channel, name: str) -> str:
    """A fanout exchange with one queue, both called `{name}.dead`."""
    dead = f"{name}.dead"
    channel.call("Exchange.Declare", exchange=dead, exchange_type="fanout")
    channel.declare(dead)
    channel.call("Queue.Bind", queue=dead, exchange=dead)
    return dead


def source(channel: Channel, name: str, **arguments: object) -> str:
    """A queue called `name` with a graveyard, whose name is given."""
    dead = graveyard(channel, name)
    given = {key.replace("_", "-"): value for key, value in arguments.items()}
    channel.declare(name, arguments={"x-dead-letter-exchange": dead} | given)
    return dead


def reject(channel: Channel, queue: str) -> None:
    tag = channel.taken(queue, no_ack=False).method.delivery_tag
    channel.send("Basic.Reject", delivery_tag=tag, requeue=False)


def delivered(channel: Channel, queue: str) -> Content:
    """Waits for the next message of a queue."""
    tag = channel.consume(queue)
    message = channel.content()
    channel.send("Basic.Ack", delivery_tag=message.method.delivery_tag)
    channel.call("Basic.Cancel", consumer_tag=tag)
    return message


def deaths(message: Content) -> list[Fields]:
    headers: Any = message.properties.headers
    return list(headers["x-death"])


@pytest.mark.parametrize("method", ["Basic.Reject", "Basic.Nack"])
def test_rejected_message_is_dead_lettered(channel: Channel, name: str, method: str) -> None:
    dead = source(channel, name)
    channel.put(name, b"a", properties={"message_id": "id", "headers": {"own": 1}})
    tag = channel.taken(name, no_ack=False).method.delivery_tag
    channel.send(method, delivery_tag=tag, requeue=False)
    message = delivered(channel, dead)
    assert (message.method.exchange, message.method.routing_key) == (dead, name)
    assert not message.method.redelivered
    assert message.body == b"a"
    assert message.properties.message_id == "id"
    assert message.properties.headers["own"] == 1  # type: ignore[index]
    (death,) = deaths(message)
    assert death["time"]
    assert {key: death[key] for key in death if key != "time"} == {
        "count": 1, "reason": "rejected", "queue": name, "exchange": "", "routing-keys": [name],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("reason", "arguments", "properties"),
    [
        ("expired", {"x_message_ttl": 20}, {}),
        ("expired", {}, {"expiration": "20"}),
        ("maxlen", {"x_max_length": 0}, {}),
    ],
)
def test_reason_is_recorded(
    channel: Channel, name: str, reason: str, arguments: Fields, properties: Fields
) -> None:
    dead = source(channel, name, **arguments)
    channel.put(name, b"a", properties=properties)
    message = delivered(channel, dead)
    assert deaths(message)[0]["reason"] == reason
    headers = message.properties.headers or {}
    assert headers["x-first-death-reason"] == reason
    assert headers["x-first-death-queue"] == name
    assert headers["x-first-death-exchange"] == ""


def test_expiration_is_removed(channel: Channel, name: str) -> None:
    dead = source(channel, name)
    channel.put(name, b"a", properties={"expiration": "20"})
    message = delivered(channel, dead)
    assert message.properties.expiration is None
    assert deaths(message)[0]["original-expiration"] == "20"


def test_dead_letter_routing_key_replaces_the_key(channel: Channel, name: str) -> None:
    dead = source(channel, name, x_dead_letter_routing_key="why")
    channel.put(name, b"a")
    reject(channel, name)
    message = delivered(channel, dead)
    assert message.method.routing_key == "why"
    assert deaths(message)[0]["routing-keys"] == [name]


def _without_time(death: Fields) -> Fields:
    return {key: value for key, value in death.items() if key != "time"}


def test_automatic_round_trips_are_counted(channel: Channel, name: str) -> None:
    wait = f"{name}.wait"
    channel.declare(
        wait,
        arguments={
            "x-message-ttl": 10, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": name,
        },
    )  # fmt: skip
    letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": wait}
    channel.declare(name, arguments=letters)
    channel.consume(name)
    channel.publish(b"a", {"headers": {"own": 1}}, routing_key=name)
    counts = []
    for _ in range(4):
        message = channel.content()
        headers: Any = message.properties.headers
        counts.append([
            (death["queue"], death["reason"], death["count"])
            for death in headers.get("x-death", [])
        ])  # fmt: skip
        channel.send("Basic.Reject", delivery_tag=message.method.delivery_tag, requeue=False)
    assert counts == [[]] + [
        [(wait, "expired", turn), (name, "rejected", turn)] for turn in (1, 2, 3)
    ]


def test_circle_without_a_rejection_ends(channel: Channel, name: str) -> None:
    second = f"{name}.2"
    for queue, target in ((name, second), (second, name)):
        channel.declare(
            queue,
            arguments={
                "x-message-ttl": 10, "x-dead-letter-exchange": "",
                "x-dead-letter-routing-key": target,
            },
        )  # fmt: skip
    channel.declare(f"{name}.clock", arguments={
        "x-message-ttl": 200, "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": f"{name}.end",
    })  # fmt: skip
    channel.declare(f"{name}.end")
    channel.put(name, b"a")
    channel.put(f"{name}.clock", b"tick")
    assert delivered(channel, f"{name}.end").body == b"tick"
    assert channel.ready(name) + channel.ready(second) == 0


def test_absent_dead_letter_exchange_drops_the_message(channel: Channel, name: str) -> None:
    channel.declare(name, arguments={"x-dead-letter-exchange": f"{name}.absent"})
    channel.put(name, b"a", b"b")
    reject(channel, name)
    assert channel.drain(name) == [b"b"]


def test_requeue_purge_and_delete_do_not_dead_letter(channel: Channel, name: str) -> None:
    dead = source(channel, name)
    channel.put(name, b"a", b"b")
    tag = channel.taken(name, no_ack=False).method.delivery_tag
    channel.send("Basic.Reject", delivery_tag=tag, requeue=True)
    channel.call("Queue.Purge", queue=name)
    channel.put(name, b"c")
    channel.call("Queue.Delete", queue=name)
    assert channel.ready(dead) == 0


def test_dead_letters_are_routed_by_all_keys(channel: Channel, name: str) -> None:
    keys = [name, f"{name}.cc", f"{name}.bcc"]
    for key in keys:
        channel.declare(f"{key}.dead")
        channel.call("Queue.Bind", queue=f"{key}.dead", exchange="amq.direct", routing_key=key)
    channel.declare(name, arguments={"x-dead-letter-exchange": "amq.direct"})
    channel.put(name, b"a", properties={"headers": {"CC": keys[1:2], "BCC": keys[2:]}})
    reject(channel, name)
    for key in keys:
        message = delivered(channel, f"{key}.dead")
        assert message.body == b"a"
        assert "BCC" not in (message.properties.headers or {})


# The history


def test_the_history_has_one_entry_for_each_queue_and_reason(channel: Channel, name: str) -> None:
    dead = source(channel, name, x_dead_letter_routing_key="why")
    second = f"{name}.second"
    channel.declare(second, arguments={"x-dead-letter-exchange": dead, "x-max-length": 0})
    channel.put(name, b"a")
    reject(channel, name)
    first = delivered(channel, dead)
    channel.put(second, b"a", properties=_again(first))
    middle = delivered(channel, dead)
    channel.call("Exchange.Declare", exchange=f"{name}.x", exchange_type="fanout")
    channel.call("Queue.Bind", queue=name, exchange=f"{name}.x")
    channel.publish(b"a", _again(middle), exchange=f"{name}.x", routing_key="other")
    channel.ready(name)
    reject(channel, name)
    history = deaths(delivered(channel, dead))
    assert [(death["queue"], death["reason"], death["count"]) for death in history] == [
        (name, "rejected", 2), (second, "maxlen", 1),
    ]  # fmt: skip
    assert (history[0]["exchange"], history[0]["routing-keys"]) == ("", [name])


def _again(message: Content) -> Fields:
    """The properties of a dead letter that a client publishes once more."""
    headers = dict(message.properties.headers or {})
    headers["x-death"] = [_without_time(death) for death in deaths(message)]
    return {"headers": headers}


def died_twice(channel: Channel, name: str) -> Fields:
    """The headers of a message that was rejected in `name`, and then over the limit of another."""
    dead = source(channel, name)
    second = f"{name}.second"
    channel.declare(second, arguments={"x-dead-letter-exchange": dead, "x-max-length": 0})
    channel.put(name, b"a")
    reject(channel, name)
    channel.put(second, b"a", properties=_again(delivered(channel, dead)))
    return dict(delivered(channel, dead).properties.headers or {})


def test_the_first_death_is_set_once(channel: Channel, name: str) -> None:
    headers = died_twice(channel, name)
    assert headers["x-first-death-reason"] == "rejected"
    assert headers["x-first-death-queue"] == name
    assert [death["queue"] for death in headers["x-death"]] == [f"{name}.second", name]


@pytest.mark.differs("3.13 and later have it")
def test_the_last_death_is_always_the_newest(channel: Channel, name: str) -> None:
    headers = died_twice(channel, name)
    assert headers["x-last-death-reason"] == "maxlen"
    assert headers["x-last-death-queue"] == f"{name}.second"


def test_a_routing_key_of_the_queues_own_takes_the_copies_off(channel: Channel, name: str) -> None:
    for given, kept in ((None, ["c"]), ("own", None)):
        queue = f"{name}.{given}"
        key = {} if given is None else {"x_dead_letter_routing_key": given}
        dead = source(channel, queue, **key)
        channel.put(queue, b"a", properties={"headers": {"CC": ["c"]}})
        reject(channel, queue)
        message = delivered(channel, dead)
        assert (message.properties.headers or {}).get("CC") == kept
        assert deaths(message)[0]["routing-keys"] == [queue, "c"]


def test_blind_copies_are_routed_at_the_second_death_too(channel: Channel, name: str) -> None:
    second = f"{name}.second"
    channel.call("Exchange.Declare", exchange=f"{name}.x", exchange_type="direct")
    channel.call("Exchange.Declare", exchange=f"{name}.y", exchange_type="direct")
    channel.declare(name, arguments={"x-dead-letter-exchange": f"{name}.x"})
    channel.declare(second, arguments={"x-dead-letter-exchange": f"{name}.y"})
    channel.declare(f"{name}.end")
    channel.call("Queue.Bind", queue=second, exchange=f"{name}.x", routing_key="blind")
    channel.call("Queue.Bind", queue=f"{name}.end", exchange=f"{name}.y", routing_key="blind")
    channel.put(name, b"a", properties={"headers": {"BCC": ["blind"]}})
    reject(channel, name)
    tag = channel.consume(second)
    channel.send("Basic.Reject", delivery_tag=channel.content().method.delivery_tag)
    channel.call("Basic.Cancel", consumer_tag=tag)
    message = delivered(channel, f"{name}.end")
    assert [death["routing-keys"] for death in deaths(message)] == [[name], [name]]
    assert "BCC" not in (message.properties.headers or {})


def test_other_properties_are_unchanged(channel: Channel, name: str) -> None:
    dead = source(channel, name)
    properties = {
        "content_type": "text/plain", "delivery_mode": 2, "priority": 3, "correlation_id": "c",
        "reply_to": "r", "message_id": "m", "message_type": "t", "user_id": "guest",
        "app_id": "a", "headers": {"own": [1, {"deep": True}]},
    }  # fmt: skip
    channel.put(name, b"a", properties=properties)
    reject(channel, name)
    found = delivered(channel, dead).properties
    assert found.headers is not None
    kept = {key: getattr(found, key) for key in properties if key != "headers"}
    assert kept | {"headers": {"own": found.headers["own"]}} == properties


@turned_round
def test_x_death_lists_the_newest_death_first(channel: Channel, name: str) -> None:
    """amqp.md section 5: `x-death` = array of tables, newest first."""
    queues = [f"{name}.{number}" for number in (1, 2, 3)]
    for queue, target in zip(queues, [*queues[1:], f"{name}.end"], strict=True):
        letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": target}
        channel.declare(queue, arguments={"x-message-ttl": 10} | letters)
    channel.declare(f"{name}.end")
    channel.put(queues[0], b"a")
    history = deaths(delivered(channel, f"{name}.end"))
    assert [death["queue"] for death in history] == queues[::-1]


# Where it goes


def test_an_internal_exchange_takes_dead_letters(channel: Channel, name: str) -> None:
    channel.call("Exchange.Declare", exchange=name, exchange_type="fanout", internal=True)
    channel.declare(f"{name}.dead")
    channel.call("Queue.Bind", queue=f"{name}.dead", exchange=name)
    channel.declare(name, arguments={"x-dead-letter-exchange": name})
    channel.put(name, b"a")
    reject(channel, name)
    assert delivered(channel, f"{name}.dead").body == b"a"


def test_dead_letter_exchange_may_be_declared_and_deleted_later(
    channel: Channel, name: str
) -> None:
    exchange = f"{name}.x"
    channel.declare(name, arguments={"x-dead-letter-exchange": exchange})
    channel.declare(f"{name}.dead")
    channel.put(name, b"before", b"while", b"after")
    reject(channel, name)
    channel.call("Exchange.Declare", exchange=exchange, exchange_type="fanout")
    channel.call("Queue.Bind", queue=f"{name}.dead", exchange=exchange)
    reject(channel, name)
    assert delivered(channel, f"{name}.dead").body == b"while"
    channel.call("Exchange.Delete", exchange=exchange)
    reject(channel, name)
    assert channel.ready(name) + channel.ready(f"{name}.dead") == 0


def test_alternate_exchange_gets_unrouted_dead_letters(channel: Channel, name: str) -> None:
    channel.call(
        "Exchange.Declare", exchange=f"{name}.x", exchange_type="direct",
        arguments={"alternate-exchange": "amq.fanout"},
    )  # fmt: skip
    channel.declare(f"{name}.dead", exclusive=True)
    channel.call("Queue.Bind", queue=f"{name}.dead", exchange="amq.fanout")
    channel.declare(name, arguments={"x-dead-letter-exchange": f"{name}.x"})
    channel.put(name, b"a")
    reject(channel, name)
    assert delivered(channel, f"{name}.dead").body == b"a"
    channel.call("Queue.Delete", queue=f"{name}.dead")


# Circles


def test_only_the_queues_of_the_circle_are_left_out(channel: Channel, name: str) -> None:
    dead = graveyard(channel, name)
    channel.declare(name, arguments={"x-max-length": 0, "x-dead-letter-exchange": dead})
    channel.call("Queue.Bind", queue=name, exchange=dead)
    channel.put(name, b"a")
    assert delivered(channel, dead).body == b"a"
    assert channel.ready(name) + channel.ready(dead) == 0


@pytest.mark.parametrize(
    ("history", "comes"),
    [
        ([("{}.end", "expired")], False),
        ([("{}.end", "rejected")], True),
        pytest.param([("{}.far", "rejected"), ("{}.end", "expired")], True, marks=turned_round),
        pytest.param([("{}.end", "expired"), ("{}.far", "rejected")], False, marks=turned_round),
        pytest.param(
            [("{}.far", "expired"), ("{}.end", "maxlen"), ("{}.far", "rejected")], False,
            marks=turned_round,
        ),
        ([("{}.far", "expired"), ("{}.end", "rejected")], True),
        ([("{}.far", "maxlen"), ("{}.far", "expired")], True),
    ],
)  # fmt: skip
def test_a_target_in_the_history_is_skipped_unless_it_was_rejected_since(
    channel: Channel, name: str, history: list[tuple[str, str]], comes: bool
) -> None:
    channel.declare(f"{name}.end")
    letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"{name}.end"}
    channel.declare(name, arguments={"x-max-length": 0} | letters)
    channel.declare(f"{name}.after", arguments={"x-max-length": 0} | letters)
    known = [
        {"queue": queue.format(name), "reason": reason, "count": 1} for queue, reason in history
    ]
    channel.put(name, b"a", properties={"headers": {"x-death": known}})
    channel.put(f"{name}.after", b"after")
    channel.consume(f"{name}.end", no_ack=True)
    bodies = list(iter(lambda: channel.content().body, b"after"))
    assert bodies == ([b"a"] if comes else [])
