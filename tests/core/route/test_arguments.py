from __future__ import annotations

import pytest

from tests.core.route.support import exchange
from tests.support.amqp import Client, make_broker
from warrenmq.core.context import BrokerLimits
from warrenmq.core.errors import ChannelError
from warrenmq.core.message.model import FieldValue, Table
from warrenmq.core.route.registry import make


def declare(**arguments: FieldValue) -> None:
    table: Table = {name.replace("_", "-"): value for name, value in arguments.items()}
    table |= {"x-delayed-type": "x-consistent-hash"}
    make(
        "x-delayed-message", "n", durable=True, auto_delete=False, internal=False, vhost="v",
        arguments=table,
    )  # fmt: skip


def test_a_warning_for_each_unknown_argument(caplog: pytest.LogCaptureFixture) -> None:
    declare(x_more=1, colour="red", alternate_exchange="other", hash_header="a", x_algorithm="ring")
    assert [record.getMessage() for record in caplog.records] == [
        f"exchange 'n' in vhost 'v': unknown argument '{name}' is stored and ignored"
        for name in ("colour", "x-more")
    ]


@pytest.mark.parametrize(
    ("strict", "argument", "answer"),
    [
        (False, "x-more", "Exchange.DeclareOk"),
        (True, "colour", "Exchange.DeclareOk"),
        (True, "x-more", "Channel.Close"),
    ],
)
def test_strict_arguments(strict: bool, argument: str, answer: str) -> None:
    client = Client(make_broker(limits=BrokerLimits(strict_arguments=strict)))
    (reply,) = client.send(
        "Exchange.Declare", exchange="n", exchange_type="direct", arguments={argument: 1}
    )
    assert reply.name == answer
    if answer == "Channel.Close":
        text = "invalid arg 'x-more' for exchange 'n' in vhost '/': there is no such argument"
        assert text in reply["reply_text"]


@pytest.mark.parametrize(
    ("type_name", "argument"),
    [
        ("fanout", "x_persist_messages"),
        ("fanout", "x_persist_ms"),
        ("x-recent-history", "x_recent_history_length"),
    ],
)
def test_limits_of_stored_messages_are_signed_64_bit_numbers(type_name: str, argument: str) -> None:
    assert exchange(type_name, "n", **{argument: 2**63 - 1}).persistence is not None
    with pytest.raises(ChannelError, match=f"{2**63} is out of range 1 to {2**63 - 1}"):
        exchange(type_name, "n", **{argument: 2**63})
