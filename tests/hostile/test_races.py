"""Many who want the same thing at the same time."""

from __future__ import annotations

import threading

from pamqp import commands

from tests.conformance import raw
from tests.support.server import WarrenServer

from .support import assert_serves, method, publish

RACERS, ROUNDS = 8, 20


def test_an_exclusive_queue_has_one_owner_at_a_time(warren: WarrenServer) -> None:
    answers: list[str] = []
    owners: list[int] = []

    def race() -> None:
        for _ in range(ROUNDS):
            with raw.connect(warren.amqp_port) as client:
                channel = client.channel()
                channel.send("Queue.Declare", queue="prize", exclusive=True)
                answer = client.receive(1)
                if isinstance(answer, commands.Queue.DeclareOk):
                    owners.append(1)
                    assert len(owners) == 1
                    owners.clear()
                    answers.append("owned")
                    client.close()
                else:
                    assert answer.reply_code == 405
                    answers.append("refused")

    racers = [threading.Thread(target=race) for _ in range(RACERS)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    assert len(answers) == RACERS * ROUNDS
    assert "owned" in answers
    assert_serves(warren)


def test_deleting_a_queue_during_delivery_cancels_its_consumer(warren: WarrenServer) -> None:
    with raw.connect(warren.amqp_port) as reader, raw.connect(warren.amqp_port) as writer:
        consuming, publishing = reader.channel(), writer.channel()
        for _ in range(20):
            consuming.declare("doomed")
            tag = consuming.consume("doomed")
            writer.send(publish(b"x" * 1000, routing_key="doomed") * 300)
            publishing.call("Queue.Delete", queue="doomed")
            delivered = 0
            while isinstance(received := reader.receive(1), commands.Basic.Deliver):
                consuming.rest_of(received)
                delivered += 1
            assert isinstance(received, commands.Basic.Cancel)
            assert received.consumer_tag == tag
            assert delivered <= 300
            reader.send(method("Basic.Ack", delivery_tag=0, multiple=True))
    assert_serves(warren)


def test_endless_requeues_do_not_starve_other_consumers(warren: WarrenServer) -> None:
    with raw.connect(warren.amqp_port) as bad, raw.connect(warren.amqp_port) as good:
        refusing, working = bad.channel(), good.channel()
        working.declare("contested")
        for channel in (refusing, working):
            channel.call("Basic.Qos", prefetch_count=10)
            channel.consume("contested")
        done = threading.Event()

        def refuse() -> None:
            bad.socket.settimeout(0.2)
            while not done.is_set():
                try:
                    tag = refusing.content().method.delivery_tag
                except TimeoutError:
                    continue
                refusing.send("Basic.Nack", delivery_tag=tag, requeue=True)

        thread = threading.Thread(target=refuse)
        thread.start()
        try:
            with raw.connect(warren.amqp_port) as writer:
                writer.channel()
                writer.send(publish(b"work", routing_key="contested") * 200)
                for _ in range(200):
                    working.send("Basic.Ack", delivery_tag=working.content().method.delivery_tag)
        finally:
            done.set()
            thread.join()
    assert_serves(warren)
