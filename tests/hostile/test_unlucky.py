"""What the machine does to a server: few open files, a signal under load."""

from __future__ import annotations

import shlex
import socket
import threading

from pamqp import commands

from tests.conformance import raw
from tests.support.process import wait_until
from tests.support.server import WarrenServer, warren_command

from .support import assert_serves, deaf, method, open_files, publish

OPEN_FILES = 64


def with_few_files() -> list[str]:
    command = shlex.join(warren_command())
    return ["bash", "-c", f'ulimit -n {OPEN_FILES}; exec {command} "$@"', "warren"]


def test_old_connections_live_on_when_files_run_out() -> None:
    with WarrenServer(command=with_few_files()) as server:
        with raw.connect(server.amqp_port) as client:
            channel = client.channel()
            channel.declare("old")
            crowd = []
            for _ in range(2 * OPEN_FILES):
                connection = socket.socket()
                connection.setblocking(False)
                connection.connect_ex((raw.HOST, server.amqp_port))
                crowd.append(connection)
            for body in (b"one", b"two", b"three"):
                channel.publish(body, routing_key="old")
                assert channel.taken("old").body == body
            assert open_files(server) <= OPEN_FILES
            for connection in crowd:
                connection.close()
            wait_until(lambda: open_files(server) < OPEN_FILES // 2, 10.0, "free files")
        assert_serves(server)
        assert server.stop() == 0


def test_a_stop_under_load_tells_every_client() -> None:
    with WarrenServer() as server:
        told: list[int | None] = []
        started = threading.Barrier(5)

        def work() -> None:
            with raw.connect(server.amqp_port) as client:
                channel = client.channel()
                queue = str(channel.declare(exclusive=True).queue)
                channel.consume(queue, no_ack=True)
                batch = publish(b"x" * 100, routing_key=queue) * 50
                begun = False
                while True:
                    client.send(batch)
                    for _ in range(50):
                        kind, number, payload = client.read_frame()
                        while kind != 3:
                            if (kind, number) == (1, 0):
                                close = raw.decode(kind, number, payload)
                                assert isinstance(close, commands.Connection.Close)
                                told.append(close.reply_code)
                                client.send_method("Connection.CloseOk")
                                client.ended()
                                return
                            kind, number, payload = client.read_frame()
                    if not begun:
                        begun = True
                        started.wait(raw.TIMEOUT_S)

        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        started.wait(raw.TIMEOUT_S)
        assert server.stop() == 0
        for worker in workers:
            worker.join()
        assert told == [320] * 4
        assert "Traceback" not in server.output()


def test_a_stop_does_not_wait_for_one_who_does_not_read() -> None:
    """The bound is the server's own; here it only has to end well."""
    with WarrenServer(env={"WARREN_DRAIN_S": "1"}) as server:
        silent = deaf(server.amqp_port)
        channel = silent.channel()
        queue = str(channel.declare().queue)
        silent.send(publish(b"x" * 100_000, routing_key=queue) * 20)
        silent.send(method("Basic.Consume", queue=queue, no_ack=True))
        assert_serves(server)
        assert server.stop() == 0
        silent.socket.close()
