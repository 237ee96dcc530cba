"""F14: the network between client and server dies without a word."""

from __future__ import annotations

from tests.conformance import raw
from tests.support.process import wait_until
from tests.support.server import WarrenServer

from .faults import BlackHole
from .support import Sender, depth, drain

HEARTBEAT_S = 1
COUNT = 50


def test_a_dead_consumer_is_let_go_and_its_messages_come_back(server: WarrenServer) -> None:
    with Sender(server, "q") as sender:
        sender.publish(COUNT)
    with BlackHole(server.amqp_port) as way:
        client = raw.connect(way.port, heartbeat=HEARTBEAT_S)
        channel = client.channel()
        channel.consume("q")
        channel.bodies(COUNT)
        assert depth(server, "q") == 0
        way.fall_silent()
        # Nothing is acked meanwhile, so only the end of the connection gives them back.
        wait_until(lambda: depth(server, "q") == COUNT, 10.0, "the messages' return")
        assert way.closed.wait(5.0)
        assert all(taken.redelivered for taken in drain(server, "q"))
        client.socket.close()


def test_a_dead_publisher_does_not_hold_up_others(server: WarrenServer) -> None:
    with BlackHole(server.amqp_port) as way, Sender(server, "q") as other:
        client = raw.connect(way.port, heartbeat=HEARTBEAT_S)
        channel = client.channel()
        channel.call("Confirm.Select")
        way.fall_silent()
        channel.publish(b"never comes", {"delivery_mode": 2}, routing_key="q")
        other.publish(COUNT)
        assert way.closed.wait(10.0)
        assert depth(server, "q") == COUNT
        client.socket.close()
