"""`python -m tests.cluster`: three RabbitMQ nodes and the hub on this machine, until Ctrl-C.

What is killed is started again.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from contextlib import ExitStack

from tests.support.hub_on_rabbitmq import HubOnRabbitMQ, prepare
from tests.support.ports import accepts
from tests.support.rabbitmq import RabbitMQServer, missing
from tests.support.rabbitmq_cluster import RabbitMQCluster
from tests.support.server import warren_command

AGAIN_S = 10.0
"""Between the end of a process and its next start."""
LOOK_S = 0.5


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    parser.add_argument(
        "--http-port", type=int, default=15672, help="the next three are RabbitMQ's"
    )
    parser.add_argument("--amqp-port", type=int, default=5672, help="of the first node")
    return parser.parse_args()


def _cluster(http_port: int, amqp_port: int) -> RabbitMQCluster:
    cluster = RabbitMQCluster("rabbitmq_management")
    for number, node in enumerate(cluster.nodes):
        node.port, node.management_port = amqp_port + number, http_port + 1 + number
    return cluster


def _hub(cluster: RabbitMQCluster, http_port: int) -> HubOnRabbitMQ:
    first, *others = cluster.nodes
    flags = ["--http-port", str(http_port)]
    hub = HubOnRabbitMQ(first, flags, others=others, command=warren_command())
    hub.http_port = http_port
    return hub


def _tell(hub: HubOnRabbitMQ, cluster: RabbitMQCluster) -> None:
    print(f"ready: the hub http://localhost:{hub.http_port}/, process {hub.pid}")
    for node in cluster.nodes:
        pages = f"RabbitMQ http://localhost:{node.management_port}/"
        print(f"  AMQP localhost:{node.port}, {pages}, process {node.pid}")
    print("The user is guest with the password guest. Kill what you like: it is started again")
    print(f"after {AGAIN_S:.0f} s. Ctrl-C stops all, and nothing of it stays.", flush=True)


def _start_again(one: HubOnRabbitMQ | RabbitMQServer, stop: threading.Event) -> None:
    print(f"process {one.pid} has ended", flush=True)
    if stop.wait(AGAIN_S):
        return
    try:
        one.start()
    except RuntimeError as error:
        print(error, flush=True)
    else:
        print(f"it is started again, as process {one.pid}", flush=True)


def main() -> int:
    given = _arguments()
    if reason := missing():
        sys.exit(reason)
    cluster = _cluster(given.http_port, given.amqp_port)
    for port in (given.http_port, *(one.port for one in cluster.nodes)):
        if accepts(port):
            sys.exit(f"port {port} is in use: choose others with --http-port and --amqp-port")
    stop = threading.Event()
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, lambda *_: stop.set())
    print("starting three nodes, which takes about half a minute", flush=True)
    with ExitStack() as stack:
        stack.enter_context(cluster)
        prepare(cluster.any_node)
        hub = stack.enter_context(_hub(cluster, given.http_port))
        _tell(hub, cluster)
        processes: list[HubOnRabbitMQ | RabbitMQServer] = [hub, *cluster.nodes]
        while not stop.wait(LOOK_S):
            for one in processes:
                if not one.running:
                    _start_again(one, stop)
    return 0


if __name__ == "__main__":
    sys.exit(main())
