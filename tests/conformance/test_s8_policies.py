"""amqp.md section 8: policies, set over HTTP, on queues and exchanges that clients use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from tests.support.process import wait_until
from tests.support.server import WarrenServer

from .raw import Channel

pytestmark = pytest.mark.differs("sets policies through a plugin")


@pytest.fixture
def http(warren: WarrenServer) -> Iterator[httpx.Client]:
    base = f"http://127.0.0.1:{warren.http_port}/api"
    with httpx.Client(base_url=base, auth=("guest", "guest")) as client:
        yield client
        for sort in ("policies", "operator-policies"):
            for policy in client.get(f"/{sort}/%2F").json():
                client.delete(f"/{sort}/%2F/{quote(policy['name'], safe='')}")


def put(http: httpx.Client, name: str, definition: dict[str, Any], sort: str = "policies") -> None:
    """For the one queue or exchange of that name."""
    body = {"pattern": f"^{name}$", "definition": definition}
    response = http.put(f"/{sort}/%2F/{name}", json=body)
    assert response.status_code in (201, 204), response.text


def ready_falls_to(channel: Channel, queue: str, count: int) -> None:
    wait_until(lambda: channel.ready(queue) == count, 10, f"{count} messages in {queue}")


def test_an_idle_queue_is_cut_to_a_new_limit(
    channel: Channel, name: str, http: httpx.Client
) -> None:
    """Nobody sends anything but the policy."""
    channel.declare(name)
    dead = str(channel.declare("").queue)
    channel.filled(name, 5)
    put(
        http, name,
        {"max-length": 2, "dead-letter-exchange": "", "dead-letter-routing-key": dead},
    )  # fmt: skip
    ready_falls_to(channel, dead, 3)
    assert channel.ready(name) == 2


def test_messages_that_are_there_expire(channel: Channel, name: str, http: httpx.Client) -> None:
    channel.declare(name)
    channel.filled(name, 5)
    put(http, name, {"message-ttl": 1})
    ready_falls_to(channel, name, 0)


def test_an_unused_queue_goes(channel: Channel, name: str, http: httpx.Client) -> None:
    channel.declare(name)
    put(http, name, {"expires": 1})

    def gone() -> bool:
        path = f"/endpoint/q/{name}"
        return http.get(http.base_url.copy_with(path=path)).status_code == 404

    wait_until(gone, 10, "the end of the queue")


def test_the_next_publish_meets_a_new_overflow(
    channel: Channel, name: str, http: httpx.Client
) -> None:
    channel.declare(name)
    channel.filled(name, 2)
    put(http, name, {"max-length": 2, "overflow": "reject-publish"})
    channel.publish(b"x", routing_key=name)
    ready_falls_to(channel, name, 2)
    http.delete(f"/policies/%2F/{name}")
    channel.publish(b"y", routing_key=name)
    assert channel.ready(name) == 3


def test_an_operator_policy_has_the_last_word(
    channel: Channel, name: str, http: httpx.Client
) -> None:
    channel.declare(name, arguments={"x-max-length": 4})
    put(http, name, {"max-length": 3})
    put(http, name, {"max-length": 1}, "operator-policies")
    for number in range(5):
        channel.publish(b"%d" % number, routing_key=name)
    assert channel.ready(name) == 1
    channel.declare(name, arguments={"x-max-length": 4})


def test_an_alternate_exchange_by_policy(channel: Channel, name: str, http: httpx.Client) -> None:
    channel.call("Exchange.Declare", exchange=name, exchange_type="direct")
    queue = str(channel.declare("").queue)
    channel.call("Queue.Bind", queue=queue, exchange="amq.fanout")
    channel.publish(b"lost", exchange=name, routing_key="k")
    put(http, name, {"alternate-exchange": "amq.fanout"})
    channel.publish(b"found", exchange=name, routing_key="k")
    assert channel.ready(queue) == 1
    http.delete(f"/policies/%2F/{name}")
    channel.publish(b"lost", exchange=name, routing_key="k")
    assert channel.ready(queue) == 1
