"""F9: hardly any open files. New connections wait or are shed, old ones and the log go on."""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path

from tests.hostile.support import open_files
from tests.support.process import wait_until
from tests.support.server import WarrenServer, warren_command

from .support import Sender, drain, numbers

FILES = 64
MIB = 1024 * 1024


def test_the_log_goes_on_when_connections_took_every_file(tmp_path: Path) -> None:
    command = ["sh", "-c", f'ulimit -n {FILES} && exec "$@"', "sh", *warren_command()]
    args = ["--segment-bytes", str(MIB)]
    data = tmp_path / "data"
    with WarrenServer(dev=True, data=data, args=args, command=command) as server:
        with Sender(server, "q", size=2_000) as sender, contextlib.ExitStack() as stack:
            sender.publish(10)
            for _ in range(2 * FILES):
                crowd = socket.create_connection((server.host, server.amqp_port))
                stack.enter_context(crowd)
            # Many times the segment: the log needs new files meanwhile.
            sender.publish(4_000)
            assert open_files(server) <= FILES
        wait_until(lambda: open_files(server) < FILES // 2, 20.0, "the end of the crowd")
        with Sender(server, "q", first=10_000) as late:
            late.publish(10)
        server.kill()
        server.start()
        assert set(numbers(drain(server, "q"))) == {*range(4_010), *range(10_000, 10_010)}
