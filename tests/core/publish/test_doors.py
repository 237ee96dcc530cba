"""Every way of publishing has the same result: reads, transactions, local publishes, dead
letters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

import pytest

from tests.support.amqp import Client, Reply, make_broker, publish
from warrenmq.core.clock import ManualClock
from warrenmq.core.errors import ChannelError, QueueFull
from warrenmq.core.local.publisher import LocalPublisher
from warrenmq.core.local.transaction import LocalTransaction
from warrenmq.core.message.model import Properties
from warrenmq.core.wire.properties import encode

DELAY_MS = 1_000
LONG = b"l" * 70_000
UNIQUE = {"x-message-deduplication": True}
ID = {"x-deduplication-header": "1"}
QUEUES: Mapping[str, Mapping[str, object]] = {
    "q": {},
    "other": {},
    "blind": {},
    "once": UNIQUE,
    "full": {"x-max-length": 2, "x-overflow": "reject-publish"},
    "last": {"x-max-length": 2},
    "ranked": {"x-max-priority": 9},
}
EXCHANGES: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "direct": ("direct", {"alternate-exchange": "rest"}),
    "rest": ("fanout", {}),
    "log": ("topic", {"x-persist-messages": 100}),
    "recent": ("x-recent-history", {"x-recent-history-length": 100}),
    "later": ("x-delayed-message", {"x-delayed-type": "topic"}),
    "unique": ("fanout", UNIQUE),
    "hashed": ("x-consistent-hash", {"hash-header": "id"}),
    "headers": ("headers", {}),
    "nested": ("fanout", {}),
}
BINDINGS = (
    *(("direct", queue, queue) for queue in QUEUES),
    ("rest", "other", ""), ("log", "q", "a.#"), ("log", "full", "a.#"), ("recent", "q", ""),
    ("later", "q", "a.#"), ("later", "blind", "b"), ("unique", "q", ""), ("hashed", "q", "5"),
    ("hashed", "other", "5"), ("headers", "q", ""), ("nested", "other", ""),
)  # fmt: skip


class Sent(NamedTuple):
    exchange: str
    key: str
    body: bytes
    properties: Mapping[str, Any] = {}


def row(exchange: str, key: str, count: int, **properties: Any) -> list[Sent]:
    return [Sent(exchange, key, b"%d" % number, properties) for number in range(count)]


ROWS: Mapping[str, list[Sent]] = {
    "plain": [*row("", "q", 3), Sent("", "q", LONG), *row("", "q", 2), *row("direct", "other", 2)],
    "persistent": row("", "q", 2, delivery_mode=2) + row("", "q", 1, content_type="é", priority=3),
    "without a queue": row("", "nowhere", 2) + row("log", "x", 1),
    "alternate": row("direct", "nowhere", 2),
    "CC": row("direct", "q", 2, headers={"CC": ["other", "nowhere", 1]}),
    "BCC": row("direct", "q", 2, headers={"CC": ["other"], "BCC": ["blind"], "n": 1}),
    "user-id": row("", "q", 2, user_id="guest"),
    "expiration": row("", "q", 2, expiration="60000"),
    "log": [*row("log", "a.1", 2), Sent("log", "a.2", LONG), *row("log", "x", 2, headers={"n": 1})],
    "log, CC": row("log", "x", 2, headers={"CC": ["a.x"], "BCC": ["a.y"]}) + row("log", "a.1", 1),
    "recent": row("recent", "", 3),
    "nested": row("nested", "a.1", 2) + row("nested", "x", 1, headers={"kind": "a"}),
    "delayed": row("later", "a.1", 2, headers={"x-delay": DELAY_MS}) + row("later", "a.1", 1),
    "delayed, BCC": row("later", "a.1", 2, headers={"x-delay": DELAY_MS, "BCC": ["b"]}),
    "exchange's duplicates": row("unique", "", 3, headers=ID) + row("unique", "", 2),
    "queue's duplicates": row("direct", "once", 3, headers=ID) + row("", "once", 2),
    "refused": row("direct", "full", 4) + row("", "q", 1),
    "refused by one": row("log", "a.1", 4),
    "dropped": row("", "last", 4),
    "ranked": row("", "ranked", 2, priority=1) + row("", "ranked", 2, priority=8),
    "hashed": [Sent("hashed", "", b"x", {"headers": {"id": f"{n}"}}) for n in range(20)],
    "headers": row("headers", "", 2, headers={"kind": "a"}) + row("headers", "", 2),
}


class Hub:
    """A broker with these exchanges and queues."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.broker = make_broker(clock=self.clock)
        self.client = Client(self.broker)
        for queue, arguments in QUEUES.items():
            self.client.declare(queue, arguments=arguments)
        for name, (kind, arguments) in EXCHANGES.items():
            self.client.call(
                "Exchange.Declare", exchange=name, exchange_type=kind, arguments=arguments
            )
        for exchange, queue, key in BINDINGS:
            self.bind(queue, exchange, key, {"kind": "a"} if exchange == "headers" else {})
        for name in ("headers", "log"):
            self.client.call("Exchange.Bind", destination=name, source="nested")

    def bind(self, queue: str, exchange: str, key: str, arguments: Mapping[str, object]) -> None:
        self.client.send(
            "Queue.Bind", queue=queue, exchange=exchange, routing_key=key, arguments=arguments
        )

    def messages(self) -> dict[str, list[tuple[Any, ...]]]:
        """Returns what is in the queues, and what the exchanges have stored."""
        self.clock.advance(DELAY_MS)
        self.client.feed(b"")
        for exchange in ("log", "recent"):
            self.client.declare(f"of {exchange}")
            self.bind(f"of {exchange}", exchange, "#", {"x-from": 0} if exchange == "log" else {})
        return {queue: self._taken(queue) for queue in (*QUEUES, "of log", "of recent")}

    def _taken(self, queue: str) -> list[tuple[Any, ...]]:
        found = []
        while (reply := self.client.call("Basic.Get", queue=queue, no_ack=True)).body:
            properties = {**dict(reply.properties or ()), "headers": None, "expiration": None}
            headers = {name: value for name, value in reply.headers.items() if "death" not in name}
            found.append((reply["exchange"], reply["routing_key"], reply.body, properties, headers))
        return found


def frames(sent: Sequence[Sent]) -> bytes:
    return b"".join(
        publish(1, body, properties, exchange=exchange, routing_key=key, mandatory=True)
        for exchange, key, body, properties in sent
    )


Outcome = tuple[int, bool]
"""How many messages came back, and whether any was refused."""


def outcome(replies: Sequence[Reply]) -> Outcome:
    """Raises `ChannelError` for properties that were refused."""
    returned, is_partial = 0, False
    for reply in replies:
        returned += reply.name == "Basic.Return"
        is_partial |= reply.name == "Basic.Nack"
        if reply.name == "Channel.Close":
            is_partial = reply["reply_text"].endswith("partial tx completion")
            if not is_partial:
                raise ChannelError(reply["reply_code"], reply["reply_text"])
    return returned, is_partial


def in_reads(hub: Hub, sent: Sequence[Sent], *, fast: bool = True) -> Outcome:
    publisher = Client(hub.broker, fast=fast)
    publisher.call("Confirm.Select")
    return outcome(publisher.feed(frames(sent)))


def frame_by_frame(hub: Hub, sent: Sequence[Sent]) -> Outcome:
    return in_reads(hub, sent, fast=False)


def in_a_transaction(hub: Hub, sent: Sequence[Sent]) -> Outcome:
    publisher = Client(hub.broker)
    publisher.call("Tx.Select")
    outcome(publisher.feed(frames(sent)))
    return outcome(publisher.send("Tx.Commit"))


def in_process(hub: Hub, sent: Sequence[Sent]) -> Outcome:
    publisher = LocalPublisher(hub.broker, hub.broker.vhosts["/"], hub.client.connection.user)
    for exchange, key, body, properties in sent:
        publisher.publish(exchange, key, Properties(**properties), body)
    return publisher.unrouted_count, publisher.rejected_count > 0


def in_a_batch(hub: Hub, sent: Sequence[Sent]) -> Outcome:
    publisher = LocalPublisher(hub.broker, hub.broker.vhosts["/"], hub.client.connection.user)
    alike = groupby(sent, lambda one: (one.exchange, one.key, one.properties))
    for (exchange, key, properties), row in alike:
        publisher.add(exchange, key, Properties(**properties), [one.body for one in row])
    publisher.flush()
    return publisher.unrouted_count, publisher.rejected_count > 0


def as_rows(hub: Hub, sent: Sequence[Sent]) -> Outcome:
    """In a transaction for each exchange, up to one that a full queue refuses as a whole."""
    unrouted = 0
    for exchange, these in groupby(sent, lambda one: one.exchange):
        vhost, user = hub.broker.vhosts["/"], hub.client.connection.user
        transaction = LocalTransaction(hub.broker, vhost, user, exchange, 2**30)
        transaction.add(
            (one.key.encode(), encode(Properties(**one.properties)), one.body) for one in these
        )
        try:
            transaction.commit(b"series", 0)
        except QueueFull:
            transaction.drop()
            return unrouted, True
        unrouted += transaction.unrouted_count
    return unrouted, False


def dying(hub: Hub, sent: Sequence[Sent], **more: object) -> None:
    """Publishes each message to a queue that dead-letters to the exchange that it is for."""
    for exchange, row in groupby(sent, lambda one: one.exchange):
        name = f"to {exchange}"
        hub.client.declare(name, arguments={"x-dead-letter-exchange": exchange, **more})
        hub.client.call("Exchange.Declare", exchange=name, exchange_type="fanout")
        hub.bind(name, name, "", {})
        hub.client.feed(frames([one._replace(exchange=name) for one in row]))


def as_dead_letters(hub: Hub, sent: Sequence[Sent]) -> None:
    dying(hub, sent, **{"x-message-ttl": 0})


def as_dead_letters_of_a_transaction(hub: Hub, sent: Sequence[Sent]) -> None:
    dying(hub, sent)
    consumer = Client(hub.broker)
    consumer.call("Tx.Select")
    for one in sent:
        consumer.call("Basic.Get", queue=f"to {one.exchange}")
    consumer.send("Basic.Nack", multiple=True)
    consumer.call("Tx.Commit")


Way = Callable[[Hub, Sequence[Sent]], Outcome | None]
PUBLISHED: list[Way] = [in_reads, in_a_transaction, in_process, in_a_batch, as_rows]
DEAD: list[Way] = [as_dead_letters, as_dead_letters_of_a_transaction]


@pytest.mark.parametrize("way", PUBLISHED + DEAD)
@pytest.mark.parametrize("sent", ROWS.values(), ids=ROWS)
def test_queues_get_the_same(sent: Sequence[Sent], way: Way) -> None:
    hub, reference = Hub(), Hub()
    expected = frame_by_frame(reference, sent)
    assert way(hub, sent) in (expected, None)
    if way is as_rows and expected[1]:
        assert not any(hub.messages().values())
    elif sent[0].exchange == "unique" and way in DEAD:
        # Else a message would be lost that a retry queue returns to its exchange.
        assert [body for _, _, body, *_ in hub.messages()["q"]] == [one.body for one in sent]
    else:
        assert hub.messages() == reference.messages()


@pytest.mark.parametrize("way", [frame_by_frame, *PUBLISHED])
@pytest.mark.parametrize(
    ("exchange", "properties"),
    [
        ("", {"expiration": "soon"}),
        ("", {"user_id": "other"}),
        ("", {"headers": {"CC": "q"}}),
        ("", {"headers": {"BCC": 7}}),
        ("", {"reply_to": "amq.rabbitmq.reply-to"}),
        ("later", {"headers": {"x-delay": "soon"}}),
        ("unique", {"headers": {**ID, "x-cache-ttl": "soon"}}),
    ],
)
def test_properties_that_are_refused(exchange: str, properties: dict[str, Any], way: Way) -> None:
    hub = Hub()
    with pytest.raises(ChannelError) as caught:
        way(hub, row(exchange, "q", 2, **properties))
    assert caught.value.code == 406
    assert not any(hub.messages().values())


@pytest.mark.parametrize("way", [frame_by_frame, *PUBLISHED])
def test_a_body_above_the_limit(way: Way) -> None:
    hub = Hub()
    hub.broker.limits = replace(hub.broker.limits, max_message_bytes=1_000)
    with pytest.raises(ChannelError, match="message size 1001 is larger than .* 1000") as caught:
        way(hub, [Sent("", "q", bytes(1_000)), Sent("", "q", bytes(1_001))])
    assert caught.value.code == 406


@pytest.mark.parametrize("way", [frame_by_frame, *PUBLISHED])
@pytest.mark.parametrize(
    "sent",
    [
        Sent("log", "x", b""),
        Sent("log", "a.1", LONG, {"headers": {"CC": ["a.2", "x"]}}),
        Sent("log", "a.1", b"", {"headers": {"BCC": ["x"]}}),
        Sent("later", "a.1", b"", {"headers": {"x-delay": DELAY_MS, "CC": ["x"]}}),
        Sent("hub.topics", "a.1", b""),
        Sent("direct", "q", b""),
    ],
)
def test_keys_and_exchanges_that_are_not_permitted(sent: Sent, way: Way) -> None:
    hub = Hub()
    users = hub.broker.users
    users.set_permissions("guest", "/", ".*", "log|later|hub", ".*")
    for exchange in ("log", "later"):
        users.set_topic_permission("guest", "/", exchange, r"^a\.", ".*")
    with pytest.raises(ChannelError) as caught:
        way(hub, [sent])
    assert caught.value.code == 403
    users.set_permissions("guest", "/", ".*", ".*", ".*")
    users.clear_topic_permissions("guest", "/")
    assert not any(hub.messages().values())
