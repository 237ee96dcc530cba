"""amqp.md section 5: where a dead letter goes and what it tells of its death."""

from __future__ import annotations

from typing import Any

import pytest

from .raw import Channel, Content

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
def test_rejected(channel: Channel, name: str, method: str) -> None:
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


def test_a_history_with_an_entry_for_each_death_is_merged(channel: Channel, name: str) -> None:
    """As brokers of long ago wrote it, without counts."""
    dead = source(channel, name)
    old = [{"queue": queue, "reason": "expired"} for queue in ("97", "97", "98", "97", "99", "98")]
    counted = {"queue": "98", "reason": "rejected", "count": 3}
    channel.put(name, b"a", properties={"headers": {"x-death": [*old, counted]}})
    for count in (1, 2):
        reject(channel, name)
        message = delivered(channel, dead)
        found = {(one["queue"], one["reason"]): one.get("count") for one in deaths(message)}
        assert len(deaths(message)) == 5
        assert found.pop(("99", "expired")) in (None, 1)
        assert found == {
            (name, "rejected"): count, ("97", "expired"): 3, ("98", "expired"): 2,
            ("98", "rejected"): 3,
        }  # fmt: skip
        channel.put(name, b"a", properties={"headers": message.properties.headers})


@pytest.mark.parametrize(
    ("reason", "arguments", "properties"),
    [
        ("expired", {"x_message_ttl": 20}, {}),
        ("expired", {}, {"expiration": "20"}),
        ("maxlen", {"x_max_length": 0}, {}),
    ],
)
def test_reason(
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


@pytest.mark.differs("3.13 and later have it")
def test_last_death(channel: Channel, name: str) -> None:
    dead = source(channel, name)
    channel.put(name, b"a")
    reject(channel, name)
    headers = delivered(channel, dead).properties.headers or {}
    assert headers["x-last-death-reason"] == "rejected"
    assert headers["x-last-death-queue"] == name
    assert headers["x-last-death-exchange"] == ""


def test_expiration_is_taken_off(channel: Channel, name: str) -> None:
    """Else it would expire in the graveyard too."""
    dead = source(channel, name)
    channel.put(name, b"a", properties={"expiration": "20"})
    message = delivered(channel, dead)
    assert message.properties.expiration is None
    assert deaths(message)[0]["original-expiration"] == "20"


def test_expired_while_the_queue_ttl_is_shorter(channel: Channel, name: str) -> None:
    dead = source(channel, name, x_message_ttl=20)
    channel.put(name, b"a", properties={"expiration": "3600000"})
    message = delivered(channel, dead)
    assert message.properties.expiration is None
    assert deaths(message)[0]["original-expiration"] == "3600000"


def test_own_routing_key(channel: Channel, name: str) -> None:
    dead = source(channel, name, x_dead_letter_routing_key="why")
    channel.put(name, b"a")
    reject(channel, name)
    message = delivered(channel, dead)
    assert message.method.routing_key == "why"
    assert deaths(message)[0]["routing-keys"] == [name]


def test_default_exchange_as_graveyard(channel: Channel, name: str) -> None:
    channel.declare(f"{name}.dead")
    letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"{name}.dead"}
    channel.declare(name, arguments=letters)
    channel.put(name, b"a")
    reject(channel, name)
    assert delivered(channel, f"{name}.dead").body == b"a"


def test_second_death_is_counted_and_moves_to_the_front(channel: Channel, name: str) -> None:
    """`name` rejects to the dead queue, the dead queue's reader sends it back by hand."""
    dead = source(channel, name)
    second = f"{name}.second"
    channel.declare(second, arguments={"x-dead-letter-exchange": dead})
    headers: Any = {}
    for queue in (name, second, name):
        channel.put(queue, b"a", properties={"headers": headers})
        reject(channel, queue)
        message = delivered(channel, dead)
        # The time is not sent back: the client writes no timestamps.
        headers = {"x-death": [_without_time(death) for death in deaths(message)]}
    assert [(death["queue"], death["count"]) for death in deaths(message)] == [
        (name, 2), (second, 1),
    ]  # fmt: skip


def _without_time(death: Fields) -> Fields:
    return {key: value for key, value in death.items() if key != "time"}


def test_automatic_round_trips_are_counted(channel: Channel, name: str) -> None:
    """work -> (rejected) wait -> (expired) work: a retry queue, three times."""
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
    """Two queues that expire into each other: dropped when it would enter `name` again."""
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


def test_absent_exchange_drops(channel: Channel, name: str) -> None:
    channel.declare(name, arguments={"x-dead-letter-exchange": f"{name}.absent"})
    channel.put(name, b"a", b"b")
    reject(channel, name)
    assert channel.drain(name) == [b"b"]


def test_requeue_purge_and_delete_are_no_deaths(channel: Channel, name: str) -> None:
    dead = source(channel, name)
    channel.put(name, b"a", b"b")
    tag = channel.taken(name, no_ack=False).method.delivery_tag
    channel.send("Basic.Reject", delivery_tag=tag, requeue=True)
    channel.call("Queue.Purge", queue=name)
    channel.put(name, b"c")
    channel.call("Queue.Delete", queue=name)
    assert channel.ready(dead) == 0


def test_many_nacked_at_once_keep_their_order(channel: Channel, name: str) -> None:
    dead = source(channel, name)
    bodies = [b"%d" % number for number in range(20)]
    channel.put(name, *bodies)
    channel.consume(name)
    channel.bodies(20)
    channel.send("Basic.Nack", delivery_tag=20, multiple=True, requeue=False)
    channel.consume(dead, consumer_tag="dead", no_ack=True)
    assert channel.bodies(20) == bodies


def test_dead_letters_go_by_all_the_keys(channel: Channel, name: str) -> None:
    """Those of CC and BCC too."""
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


def test_copies_die_with_all_their_keys(channel: Channel, name: str) -> None:
    """The keys of CC are told, those of BCC are not."""
    dead = source(channel, name)
    channel.put(name, b"a", properties={"headers": {"CC": ["c1", "c2"], "BCC": ["b"]}})
    reject(channel, name)
    (death,) = deaths(delivered(channel, dead))
    assert death["routing-keys"] == [name, "c1", "c2"]


# The history


def test_the_history_has_one_entry_for_each_queue_and_reason(channel: Channel, name: str) -> None:
    """Newest first; what died again keeps what was told of its first death there."""
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


def test_the_same_queue_with_another_reason_is_another_entry(channel: Channel, name: str) -> None:
    dead = source(channel, name, x_message_ttl=20)
    channel.put(name, b"a")
    again = _again(delivered(channel, dead))
    channel.publish(b"a", again, routing_key=name)
    if message := channel.get(name, no_ack=False):
        channel.send("Basic.Reject", delivery_tag=message.method.delivery_tag, requeue=False)
        history = deaths(delivered(channel, dead))
        assert [(death["reason"], death["count"]) for death in history] == [
            ("rejected", 1), ("expired", 1),
        ]  # fmt: skip


def test_the_first_death_is_set_once(channel: Channel, name: str) -> None:
    dead = source(channel, name)
    second = f"{name}.second"
    channel.declare(second, arguments={"x-dead-letter-exchange": dead, "x-max-length": 0})
    channel.put(name, b"a")
    reject(channel, name)
    channel.put(second, b"a", properties=_again(delivered(channel, dead)))
    headers = delivered(channel, dead).properties.headers or {}
    assert headers["x-first-death-reason"] == "rejected"
    assert headers["x-first-death-queue"] == name
    assert [death["queue"] for death in headers["x-death"]] == [second, name]  # type: ignore[call-overload, index, union-attr]


@pytest.mark.differs("3.13 and later have it")
def test_the_last_death_is_always_the_newest(channel: Channel, name: str) -> None:
    dead = source(channel, name)
    second = f"{name}.second"
    channel.declare(second, arguments={"x-dead-letter-exchange": dead, "x-max-length": 0})
    channel.put(name, b"a")
    reject(channel, name)
    channel.put(second, b"a", properties=_again(delivered(channel, dead)))
    headers = delivered(channel, dead).properties.headers or {}
    assert headers["x-last-death-reason"] == "maxlen"
    assert headers["x-last-death-queue"] == second


def test_a_routing_key_of_the_queues_own_takes_the_copies_off(channel: Channel, name: str) -> None:
    """CC stays in the message only as long as it decides where it goes."""
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
    """And are told to nobody."""
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


def test_everything_else_stays(channel: Channel, name: str) -> None:
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
def test_three_deaths_are_told_newest_first(channel: Channel, name: str) -> None:
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


def test_an_exchange_may_come_and_go(channel: Channel, name: str) -> None:
    """It is looked for when a message dies."""
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


def test_an_alternate_exchange_takes_what_finds_no_queue(channel: Channel, name: str) -> None:
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


def test_alternates_in_a_circle_end(channel: Channel, name: str) -> None:
    """amqp.md, bad input 30: the message is dropped, and the broker serves on."""
    for exchange, other in ((f"{name}.1", f"{name}.2"), (f"{name}.2", f"{name}.1")):
        channel.call(
            "Exchange.Declare", exchange=exchange, exchange_type="direct",
            arguments={"alternate-exchange": other},
        )  # fmt: skip
    channel.declare(name, arguments={"x-dead-letter-exchange": f"{name}.1"})
    channel.put(name, b"a", b"b")
    reject(channel, name)
    assert channel.drain(name) == [b"b"]


# Circles


def test_a_queue_that_overflows_into_itself_ends(channel: Channel, name: str) -> None:
    letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": name}
    channel.declare(name, arguments={"x-max-length": 1} | letters)
    channel.put(name, b"a", b"b", b"c")
    assert channel.drain(name) == [b"c"]


def test_a_queue_that_is_rejected_into_itself_goes_on(channel: Channel, name: str) -> None:
    """A consumer's doing is never taken for a circle."""
    letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": name}
    channel.declare(name, arguments=letters)
    channel.consume(name)
    channel.publish(b"a", routing_key=name)
    for turn in range(4):
        message = channel.content()
        if turn:
            assert [death["count"] for death in deaths(message)] == [turn]
        channel.send("Basic.Reject", delivery_tag=message.method.delivery_tag)


def test_only_the_queues_of_the_circle_are_left_out(channel: Channel, name: str) -> None:
    """Of two targets the one where it has been is skipped, the other one gets it."""
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
    """The cycle rule, with a history (newest first) that a client has written. An entry of the
    queue in which it dies now comes before all of them."""
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
