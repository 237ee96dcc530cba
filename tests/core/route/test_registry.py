from __future__ import annotations

import pytest

from tests.core.route.support import exchange
from warrenmq.core.errors import ChannelError
from warrenmq.core.message.model import FieldValue, Table
from warrenmq.core.route.direct import DirectExchange
from warrenmq.core.route.exchange import Exchange
from warrenmq.core.route.registry import equivalent, exchange_types, make, register


def test_make_gives_an_exchange_of_the_type() -> None:
    arguments: Table = {"alternate-exchange": "other"}
    made = make(
        "topic", "n", durable=False, auto_delete=True, internal=True, arguments=arguments, vhost="v"
    )
    assert (made.type_name, made.name, made.vhost) == ("topic", "n", "v")
    assert (made.durable, made.auto_delete, made.internal) == (False, True, True)
    assert (made.arguments, made.alternate) == (arguments, "other")


@pytest.mark.parametrize("type_name", ["", "x-unknown", "Direct"])
def test_an_unknown_type_is_refused(type_name: str) -> None:
    with pytest.raises(ChannelError) as refusal:
        exchange(type_name)
    assert refusal.value.reply_text == (
        f"PRECONDITION_FAILED - unknown exchange type '{type_name}'"
    )


def test_a_type_is_one_class_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warrenmq.core.route.registry.exchange_types", dict(exchange_types))

    @register
    class LoudExchange(DirectExchange):
        type_name = "x-loud"

    assert isinstance(exchange("x-loud"), LoudExchange)
    with pytest.raises(ValueError, match="'x-loud' is registered already"):
        register(LoudExchange)


AGAIN = {"type_name": "direct", "durable": True, "auto_delete": False, "internal": False}


@pytest.mark.parametrize(
    ("change", "arguments", "text"),
    [
        ({"type_name": "topic"}, {}, "'type' {}: received 'topic' but current is 'direct'"),
        ({"durable": False}, {}, "'durable' {}: received 'false' but current is 'true'"),
        ({"auto_delete": True}, {}, "'auto_delete' {}: received 'true' but current is 'false'"),
        ({"internal": True}, {}, "'internal' {}: received 'true' but current is 'false'"),
        (
            {},
            {"alternate-exchange": "b"},
            "'alternate-exchange' {}: received 'b' but current is 'a'",
        ),
        (
            {},
            {},
            "'alternate-exchange' {}: received none but current is the value 'a' of type 'longstr'",
        ),
        ({"type_name": "topic", "durable": False}, {}, "'type' {}: received 'topic'"),
    ],
)
def test_the_first_difference_is_told(
    change: dict[str, FieldValue], arguments: Table, text: str
) -> None:
    existing = exchange("direct", "n", alternate_exchange="a")
    with pytest.raises(ChannelError) as refusal:
        equivalent(existing, **(AGAIN | change), arguments=arguments)  # type: ignore[arg-type]
    assert refusal.value.code == 406
    expected = "inequivalent arg " + text.format("for exchange 'n' in vhost '/'")
    assert refusal.value.explanation.startswith(expected)


def declared_again(existing: Exchange, arguments: Table) -> None:
    equivalent(existing, existing.type_name, True, False, False, arguments)


def test_numbers_of_exchange_arguments_compare_by_value() -> None:
    existing = exchange("fanout", "n", x_persist_messages=10)
    declared_again(existing, {"x-persist-messages": 10.0})
    with pytest.raises(ChannelError, match="'x-persist-messages' .*: received '11' but current"):
        declared_again(existing, {"x-persist-messages": 11})


@pytest.mark.parametrize("arguments", [{}, {"x-colour": "blue"}, {"x-more": 5}])
def test_unknown_arguments_are_not_compared(arguments: Table) -> None:
    declared_again(exchange("direct", "n", x_colour="red"), arguments)


def test_arguments_of_a_type_are_compared() -> None:
    existing = exchange("x-consistent-hash", "n", hash_header="a")
    with pytest.raises(ChannelError, match="'hash-header' .*: received 'b' but current is 'a'"):
        declared_again(existing, {"hash-header": "b"})
