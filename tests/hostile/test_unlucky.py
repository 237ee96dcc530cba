"""What the machine does to a server: few open files, a signal under load."""

from __future__ import annotations

import threading

from pamqp import commands

from tests.conformance import raw
from tests.support.server import WarrenServer

from .support import assert_serves, deaf, method, publish


def test_a_stop_under_load_closes_every_connection() -> None:
    with WarrenServer() as server:
        codes: list[int | None] = []
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
                                codes.append(close.reply_code)
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
        assert codes == [320] * 4
        assert "Traceback" not in server.output()


def test_a_stop_does_not_wait_for_clients_that_do_not_read() -> None:
    with WarrenServer(env={"WARREN_DRAIN_S": "1"}) as server:
        silent = deaf(server.amqp_port)
        channel = silent.channel()
        queue = str(channel.declare().queue)
        silent.send(publish(b"x" * 100_000, routing_key=queue) * 20)
        silent.send(method("Basic.Consume", queue=queue, no_ack=True))
        assert_serves(server)
        assert server.stop() == 0
        silent.socket.close()
