from __future__ import annotations

import pytest

from tests.support.amqp import Client, make_broker
from warrenmq.core.broker import Limits
from warrenmq.core.errors import ChannelError
from warrenmq.core.message.model import FieldValue, Table
from warrenmq.core.route.arguments import ExchangeArguments
from warrenmq.core.route.registry import make


def declare(**arguments: FieldValue) -> None:
    table: Table = {name.replace("_", "-"): value for name, value in arguments.items()}
    strict = bool(table.pop("strict", False))
    table |= {"x-delayed-type": "x-consistent-hash"}
    make(
        "x-delayed-message", "n", durable=True, auto_delete=False, internal=False, vhost="v",
        arguments=table, strict=strict,
    )  # fmt: skip


def test_text() -> None:
    arguments = ExchangeArguments("n", "v", {"a": "text", "b": 5})
    assert (arguments.text("a"), arguments.text("c")) == ("text", None)
    with pytest.raises(ChannelError) as refusal:
        arguments.text("b")
    assert refusal.value.reply_text == (
        "PRECONDITION_FAILED - invalid type 'signedint' for arg 'b' in exchange 'n' in vhost 'v'"
    )


def test_invalid() -> None:
    refusal = ExchangeArguments("n", "v", {}).invalid("a", "too loud")
    assert (refusal.code, refusal.explanation) == (
        406, "invalid arg 'a' for exchange 'n' in vhost 'v': too loud",
    )  # fmt: skip


def test_a_warning_for_each_unknown_argument(caplog: pytest.LogCaptureFixture) -> None:
    declare(x_more=1, colour="red")
    assert [record.getMessage() for record in caplog.records] == [
        f"exchange 'n' in vhost 'v': unknown argument '{name}' is kept and ignored"
        for name in ("colour", "x-more")
    ]


def test_none_for_what_the_type_its_bases_or_all_know(caplog: pytest.LogCaptureFixture) -> None:
    declare(alternate_exchange="other", hash_header="a", x_algorithm="ring")
    assert caplog.records == []


def test_strict_arguments(caplog: pytest.LogCaptureFixture) -> None:
    declare(colour="red", hash_header="a", strict=True)
    with pytest.raises(ChannelError) as refusal:
        declare(x_more=1, strict=True)
    assert (refusal.value.code, refusal.value.explanation) == (
        406,
        "invalid arg 'x-more' for exchange 'n' in vhost 'v': there is no such argument "
        "(strict-arguments is on)",
    )


@pytest.mark.parametrize(
    ("strict", "answer"), [(False, "Exchange.DeclareOk"), (True, "Channel.Close")]
)
def test_strict_arguments_are_the_brokers_choice(strict: bool, answer: str) -> None:
    client = Client(make_broker(limits=Limits(strict_arguments=strict)))
    (reply,) = client.send(
        "Exchange.Declare", exchange="n", exchange_type="direct", arguments={"x-more": 1}
    )
    assert reply.name == answer
