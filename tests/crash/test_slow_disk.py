"""F8: a disk that takes seconds to sync. Only who asked for the disk waits for it."""

from __future__ import annotations

import select
from pathlib import Path

from tests.conformance import frames, raw
from tests.support.server import WarrenServer

from .faults import injected
from .support import Sender

DELAY_S = 4
ROUNDS = 20


def test_only_persistent_messages_wait(server: WarrenServer, tmp_path: Path) -> None:
    with (
        Sender(server, "durable") as sender,
        raw.connect(server.amqp_port, heartbeat=1) as client,
    ):
        sender.publish(10)
        channel = client.channel()
        queue = str(channel.declare(exclusive=True).queue)
        channel.consume(queue, no_ack=True)
        delay = f"delay_enter={DELAY_S * 1_000_000}"
        with injected(server, "fdatasync", delay, tmp_path) as injection:
            sender.send(10)
            for number in range(ROUNDS):
                channel.publish(b"%d" % number, routing_key=queue)
                assert channel.content().body == b"%d" % number
            assert waits(sender), "the disk was not slow"
            wait_for_heartbeat(client)
            assert waits(sender), "no heartbeat came while the disk was slow"
            assert len(sender.wait().confirmed) == 20
            assert injection.fired, "nothing was delayed"


def waits(sender: Sender) -> bool:
    return not select.select([sender.client.socket], [], [], 0)[0]


def wait_for_heartbeat(client: raw.Client) -> None:
    client.send(frames.heartbeat())
    kind, _, _ = client.read_frame()
    assert kind == frames.HEARTBEAT
