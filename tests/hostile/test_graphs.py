"""Long chains and rings of exchanges: no recursion, no half-done work."""

from __future__ import annotations

from itertools import pairwise

from tests.conformance import raw
from tests.support.server import WarrenServer

from .support import method, publish

LENGTH = 1_500
"""Beyond the interpreter's recursion limit however few frames a step takes."""


def declare_chain(client: raw.Client, *, auto_delete: bool = False) -> None:
    names = [f"link{number}" for number in range(LENGTH)]
    declared = [
        method(
            "Exchange.Declare",
            exchange=name,
            exchange_type="fanout",
            auto_delete=auto_delete,
            nowait=True,
        )
        for name in names
    ]
    bound = [
        method("Exchange.Bind", source=source, destination=destination, nowait=True)
        for source, destination in pairwise(names)
    ]
    client.send(b"".join(declared + bound))


def test_a_long_chain_of_auto_delete_exchanges_is_deleted(warren: WarrenServer) -> None:
    with raw.connect(warren.amqp_port) as client:
        channel = client.channel()
        queue = str(channel.declare(exclusive=True).queue)
        declare_chain(client, auto_delete=True)
        last = f"link{LENGTH - 1}"
        channel.call("Queue.Bind", queue=queue, exchange=last)
        channel.publish(b"through all", exchange="link0")
        assert channel.taken(queue).body == b"through all"
        channel.call("Queue.Unbind", queue=queue, exchange=last)
        for name in ("link0", "link700", last):
            channel.send("Exchange.Declare", exchange=name, exchange_type="fanout", passive=True)
            channel.refused(404)
            channel.open()


def test_a_ring_of_exchanges_delivers_once(warren: WarrenServer) -> None:
    with raw.connect(warren.amqp_port) as client:
        channel = client.channel()
        queue = str(channel.declare(exclusive=True).queue)
        declare_chain(client)
        channel.call("Exchange.Bind", source=f"link{LENGTH - 1}", destination="link0")
        channel.call("Queue.Bind", queue=queue, exchange="link800")
        client.send(publish(b"round", exchange="link5") * 100)
        assert channel.ready(queue) == 100
        names = [f"link{number}" for number in range(LENGTH)]
        client.send(b"".join(method("Exchange.Delete", exchange=x, nowait=True) for x in names))
        channel.publish(b"to nobody", exchange="amq.fanout")
        assert channel.ready(queue) == 100
