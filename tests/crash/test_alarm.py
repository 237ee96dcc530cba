"""The disk alarm from outside: publishers are told and wait, posts are refused, consumers go on."""

from __future__ import annotations

from pathlib import Path

import httpx
from pamqp import commands

from tests.conformance import raw
from tests.support.server import WarrenServer

from .faults import SmallDisk

MIB = 1024 * 1024
SIZE = 4_000
ARGS = ["--disk-free-limit", "16MiB", "--segment-bytes", str(MIB)]


def publish_until_blocked(client: raw.Client, channel: raw.Channel) -> int:
    """Publishes, one batch after the other; gives how many were confirmed."""
    sent = answered = confirmed = 0
    while True:
        for _ in range(20):
            channel.publish(b"x" * SIZE, {"delivery_mode": 2}, routing_key="q")
            sent += 1
        while answered < sent:
            method = raw.decode(*client.read_frame())
            if isinstance(method, commands.Connection.Blocked):
                return confirmed
            assert isinstance(method, commands.Basic.Ack | commands.Basic.Nack)
            tags = method.delivery_tag - answered if method.multiple else 1
            answered += tags
            confirmed += tags if isinstance(method, commands.Basic.Ack) else 0


def test_a_disk_alarm_comes_and_goes(tmp_path: Path) -> None:
    data = tmp_path / "disk"
    data.mkdir()
    with (
        SmallDisk(data, 32 * MIB) as disk,
        WarrenServer(dev=True, data=data / "data", args=ARGS, command=disk.command) as server,
        raw.connect(server.amqp_port) as client,
    ):
        channel = client.channel()
        channel.declare("q", durable=True)
        channel.call("Confirm.Select")
        confirmed = publish_until_blocked(client, channel)
        assert confirmed

        target = f"{server.http_url}/endpoint/q/q"
        answer = httpx.post(target, content=b"one more", auth=("guest", "guest"))
        assert answer.status_code == 507
        assert "retry-after" in answer.headers

        with raw.connect(server.amqp_port) as other:
            assert len(other.channel().drain("q")) >= confirmed
        client.expect("Connection.Unblocked")
        assert httpx.post(target, content=b"one", auth=("guest", "guest")).status_code == 202
