"""x-expires: an unused queue is deleted, never early."""

from __future__ import annotations

import gc

from tests.support.amqp import Client, make_broker, take_turns
from warrenmq.core.clock import ManualClock
from warrenmq.core.queue.queue import Queue


def test_a_queue_expires_exactly_on_time() -> None:
    clock = ManualClock()
    client = Client(make_broker(clock=clock))
    client.declare("q", arguments={"x-expires": 1_000})
    for by_ms, is_there in ((999, True), (1, False)):
        clock.advance(by_ms)
        take_turns(client.broker)
        assert bool(client.broker.vhosts["/"].queues) is is_there


def test_a_deleted_queue_needs_no_collector() -> None:
    client = Client(make_broker())
    arguments = {"x-expires": 86_400_000, "x-message-ttl": 86_400_000, "x-max-length": 5}
    gc.collect()
    gc.disable()
    try:
        client.declare("q", arguments=arguments)
        client.publish(b"x", {}, routing_key="q")
        client.call("Queue.Delete", queue="q")
        client.call("Channel.Close", reply_code=200)  # which remembers its last route
        left = [found for found in gc.get_objects() if isinstance(found, Queue)]
    finally:
        gc.enable()
    assert left == []
