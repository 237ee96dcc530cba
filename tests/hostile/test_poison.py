"""Messages that are legal and become illegal on their way: they may be lost, nobody else may."""

from __future__ import annotations

import pytest

from tests.conformance import raw
from tests.conformance.frames import Raw, long_string, short_string
from tests.support.process import wait_until
from tests.support.server import WarrenServer
from warrenmq.core.wire.tables import MAX_DEPTH, MAX_ENTRIES

from .support import assert_serves


def nested(levels: int) -> Raw:
    table = long_string(b"")
    for _ in range(levels - 1):
        table = long_string(short_string("t") + b"F" + table)
    return Raw(table)


FULL = {
    "as many headers as a table may have": {f"h{number}": number for number in range(MAX_ENTRIES)},
    "headers as deep as a table may be": nested(MAX_DEPTH),
    "a history of its own making": {"x-death": [{"queue": "q", "count": -1}, 5, {"count": "x"}]},
    "a history with too many entries": {"x-death": [{"queue": f"q{n}"} for n in range(500)]},
}


@pytest.mark.parametrize("headers", FULL.values(), ids=FULL.keys())
def test_dead_letters_with_full_headers_stop_no_other(
    warren: WarrenServer, headers: object
) -> None:
    with raw.connect(warren.amqp_port) as client:
        channel = client.channel()
        grave = str(channel.declare(exclusive=True).queue)
        dead_letter = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": grave}
        queue = str(channel.declare(exclusive=True, arguments=dead_letter).queue)
        channel.publish(b"poison", {"headers": headers}, routing_key=queue)
        tag = channel.taken(queue, no_ack=False).method.delivery_tag
        channel.send("Basic.Reject", delivery_tag=tag)
        channel.publish(b"behind it", {"headers": {}}, routing_key=queue)
        tag = channel.taken(queue, no_ack=False).method.delivery_tag
        channel.send("Basic.Reject", delivery_tag=tag)
        assert_serves(warren)
        wait_until(lambda: channel.ready(grave) > 0, 10.0, "a dead letter")
        assert channel.drain(grave)[-1] == b"behind it"
