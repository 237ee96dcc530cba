"""amqp.md section 8: which policy applies, and how it combines with arguments.

Policies are set over HTTP, on the paths of RabbitMQ's management plugin. Those of a test match
names that begin with its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.process import wait_until
from tests.support.server import WarrenServer

from .raw import Channel

Fields = dict[str, Any]

pytestmark = pytest.mark.differs("its management plugin is not running")


class Policies:
    """Sets policies; they are gone after the test."""

    def __init__(self, client: httpx.Client, name: str) -> None:
        self._client = client
        self._name = name
        self._made: list[str] = []

    def put(
        self, _word: str = "policy", *, sort: str = "policies", pattern: str = "", **fields: Any
    ) -> None:
        """`fields` are those of the policy; its definition's keys are written with `_`."""
        definition = {key.replace("_", "-"): value for key, value in fields["definition"].items()}
        path = f"/{sort}/%2F/{self._name}-{_word}"
        document = {"pattern": pattern or f"^{self._name}"} | fields | {"definition": definition}
        answer = self._client.put(path, json=document)
        assert answer.status_code in (201, 204), answer.text
        self._made.append(path)

    def delete(self, word: str = "policy", sort: str = "policies") -> None:
        path = f"/{sort}/%2F/{self._name}-{word}"
        assert self._client.delete(path).status_code == 204
        self._made.remove(path)

    def end(self) -> None:
        for path in set(self._made):
            self._client.delete(path)


@pytest.fixture
def policies(warren: WarrenServer, name: str) -> Iterator[Policies]:
    with httpx.Client(base_url=f"{warren.http_url}/api", auth=("guest", "guest")) as client:
        found = Policies(client, name)
        yield found
        found.end()


def put(channel: Channel, queue: str, count: int) -> None:
    channel.put(queue, *(b"%d" % number for number in range(count)))


def test_redeclaration_ignores_policies(channel: Channel, policies: Policies, name: str) -> None:
    """A redeclaration is compared with the arguments, not with the policy."""
    policies.put(definition={"max_length": 1})
    for _ in range(2):
        channel.declare(name)
    channel.send("Queue.Declare", queue=name, arguments={"x-max-length": 1})
    channel.refused(406)


def test_one_policy_wins(channel: Channel, policies: Policies, name: str) -> None:
    """The one of the highest priority; keys of the others have no effect."""
    policies.put("low", priority=1, definition={"max_length": 1, "overflow": "reject-publish"})
    policies.put("high", priority=2, definition={"max_length": 2})
    channel.declare(name)
    put(channel, name, 3)
    assert channel.drain(name) == [b"1", b"2"]
    policies.delete("high")
    put(channel, name, 3)
    assert channel.drain(name) == [b"0"]


@pytest.mark.parametrize(("argument", "policy"), [(2, 5), (5, 2)])
def test_smaller_of_argument_and_policy(
    channel: Channel, policies: Policies, name: str, argument: int, policy: int
) -> None:
    policies.put(definition={"max_length": policy})
    channel.declare(name, arguments={"x-max-length": argument})
    put(channel, name, 9)
    assert channel.ready(name) == 2


def test_argument_that_is_not_a_number_overrides_the_policy(
    channel: Channel, policies: Policies, name: str
) -> None:
    policies.put(definition={"max_length": 2, "overflow": "reject-publish"})
    channel.declare(name, arguments={"x-overflow": "drop-head"})
    put(channel, name, 3)
    assert channel.drain(name) == [b"1", b"2"]


@pytest.mark.parametrize(("own", "operator"), [(2, 5), (5, 2)])
def test_operator_policy_takes_away_only(
    channel: Channel, policies: Policies, name: str, own: int, operator: int
) -> None:
    policies.put(definition={"max_length": own})
    policies.put(sort="operator-policies", definition={"max_length": operator})
    channel.declare(name)
    put(channel, name, 9)
    assert channel.ready(name) == 2


def test_operator_policy_applies_without_a_policy(
    channel: Channel, policies: Policies, name: str
) -> None:
    policies.put(
        sort="operator-policies", definition={"max_length": 2, "overflow": "reject-publish"}
    )
    channel.declare(name)
    put(channel, name, 3)
    assert channel.drain(name) == [b"0", b"1"]


@pytest.mark.parametrize(
    ("apply_to", "limited"),
    [
        ("all", ["classic", "quorum"]),
        ("queues", ["classic", "quorum"]),
        ("classic_queues", ["classic"]),
        ("quorum_queues", ["quorum"]),
        ("exchanges", []),
        ("streams", []),
    ],
)
def test_policy_applies_to_the_selected_kinds(
    channel: Channel, policies: Policies, name: str, apply_to: str, limited: list[str]
) -> None:
    keys: Fields = {"max_length": 1}
    if apply_to == "exchanges":
        keys = {"alternate_exchange": "amq.fanout"}
    elif apply_to == "streams":
        keys = {"max_length_bytes": 1}
    policies.put(definition=keys, **{"apply-to": apply_to})
    for kind in ("classic", "quorum"):
        queue = f"{name}.{kind}"
        channel.declare(queue, durable=True, arguments={"x-queue-type": kind})
        put(channel, queue, 3)
        assert channel.ready(queue) == (1 if kind in limited else 3)
        channel.call("Queue.Delete", queue=queue)


def test_delays_by_policy(channel: Channel, policies: Policies, name: str) -> None:
    """The key delayed-message of LavinMQ."""
    channel.call("Exchange.Declare", exchange=name, exchange_type="fanout")
    channel.declare(f"q.{name}")
    channel.call("Queue.Bind", queue=f"q.{name}", exchange=name)
    policies.put(definition={"delayed_message": True})
    channel.publish(b"later", {"headers": {"x-delay": 100}}, exchange=name)
    channel.publish(b"now", exchange=name)
    channel.consume(f"q.{name}", no_ack=True)
    assert channel.bodies(2) == [b"now", b"later"]


def test_an_idle_queue_is_cut_to_a_new_limit(
    channel: Channel, policies: Policies, name: str
) -> None:
    """Without traffic on the queue."""
    channel.declare(name)
    dead = str(channel.declare("").queue)
    channel.filled(name, 5)
    letters = {"dead_letter_exchange": "", "dead_letter_routing_key": dead}
    policies.put(definition={"max_length": 2} | letters)
    wait_until(lambda: channel.ready(dead) == 3, 10, "three dead letters")
    assert channel.ready(name) == 2


def test_an_alternate_exchange_by_policy(channel: Channel, policies: Policies, name: str) -> None:
    channel.call("Exchange.Declare", exchange=name, exchange_type="direct")
    queue = str(channel.declare("").queue)
    channel.call("Queue.Bind", queue=queue, exchange="amq.fanout")
    channel.publish(b"lost", exchange=name, routing_key="k")
    policies.put(definition={"alternate_exchange": "amq.fanout"})
    channel.publish(b"found", exchange=name, routing_key="k")
    assert channel.ready(queue) == 1
    policies.delete()
    channel.publish(b"lost", exchange=name, routing_key="k")
    assert channel.ready(queue) == 1


# Defects of other brokers


def test_lavinmq_187_replaced_policy_leaves_nothing_behind(
    channel: Channel, policies: Policies, name: str
) -> None:
    """The limit in bytes stayed when another policy with a limit in messages took over."""
    channel.declare(name)
    policies.put(priority=1, definition={"max_length_bytes": 3})
    put(channel, name, 9)
    assert channel.ready(name) == 3
    policies.put("second", priority=2, definition={"max_length": 1_000})
    put(channel, name, 9)
    assert channel.ready(name) == 12


def test_lavinmq_999_smaller_delivery_limit_of_a_policy_counts(
    channel: Channel, policies: Policies, name: str
) -> None:
    channel.declare(name, arguments={"x-delivery-limit": 5})
    policies.put(definition={"delivery_limit": 1})
    channel.put(name, b"poison", b"next")
    for _ in range(2):
        message = channel.taken(name, no_ack=False)
        assert message.body == b"poison"
        channel.send("Basic.Reject", delivery_tag=message.method.delivery_tag, requeue=True)
    assert channel.taken(name).body == b"next"


def test_lavinmq_1613_limit_of_a_stream_by_policy(
    channel: Channel, policies: Policies, name: str
) -> None:
    arguments = {"x-queue-type": "stream", "x-stream-max-segment-size-bytes": 10_000}
    channel.declare(name, durable=True, arguments=arguments)
    channel.call("Confirm.Select")
    for _ in range(10):
        for _ in range(10):
            channel.publish(bytes(1_000), routing_key=name)
        while channel.expect("Basic.Ack").delivery_tag % 10:
            pass
    assert channel.ready(name) == 100
    policies.put(definition={"max_length_bytes": 30_000})
    assert channel.ready(name) < 60
    channel.call("Queue.Delete", queue=name)
