"""The delayed message exchange as an exchange: its inner type, and which messages wait."""

from __future__ import annotations

import pytest

from tests.core.route.support import FakeQueue, exchange
from warrenmq.core.errors import ChannelError
from warrenmq.core.message.model import FieldValue
from warrenmq.core.route.exchange import Exchange
from warrenmq.core.route.registry import exchange_types
from warrenmq.core.route.resolve import resolve

INNER = [name for name, kind in exchange_types.items() if kind.inner_kind is None]


def delayed(inner: str = "direct", **arguments: FieldValue) -> tuple[Exchange, FakeQueue]:
    """With the queue for what waits."""
    found = exchange("x-delayed-message", "x", x_delayed_type=inner, **arguments)
    found.inner = FakeQueue("waiting")
    return found, found.inner


@pytest.mark.parametrize("inner", INNER)
def test_it_is_of_any_type(inner: str) -> None:
    made, _ = delayed(inner)
    plain = exchange(inner)
    assert isinstance(made, type(plain))
    assert (made.type_name, made.inner_kind) == ("x-delayed-message", "delay")
    assert made.uses_headers and made.each_message
    assert (made.uses_key, made.one_key) == (plain.uses_key, plain.one_key)


@pytest.mark.parametrize("inner", [None, "", "nonsense", "x-delayed-message", 5, True, ["direct"]])
def test_other_types_are_refused(inner: FieldValue) -> None:
    with pytest.raises(ChannelError) as refused:
        exchange("x-delayed-message", "x", x_delayed_type=inner)
    assert refused.value.code == 406
    assert "invalid arg 'x-delayed-type' for exchange 'x' in vhost '/': " in str(refused.value)
    assert "direct, fanout, headers" in str(refused.value)


def test_the_type_has_to_be_given() -> None:
    with pytest.raises(ChannelError, match="nothing given, it must be one of"):
        exchange("x-delayed-message")


def test_types_that_keep_messages_themselves_are_refused() -> None:
    keeping = [name for name, kind in exchange_types.items() if kind.inner_kind is not None]
    for inner in keeping:
        with pytest.raises(ChannelError, match=f"'{inner}' given, it must be one of"):
            exchange("x-delayed-message", x_delayed_type=inner)


def test_arguments_of_the_inner_type_are_checked() -> None:
    made, queue = delayed("headers")[0], FakeQueue("q")
    with pytest.raises(ChannelError, match="x-match"):
        made.bind(queue, "", {"x-match": "some"})


def test_bindings_are_those_of_the_inner_type() -> None:
    direct, topic, fanout = (delayed(name)[0] for name in ("direct", "topic", "fanout"))
    queue = FakeQueue("q")
    for made in (direct, topic, fanout):
        made.bind(queue, "a.*", {})
    for headers in (None, {}, {"x-delay": 0}, {"x-delay": -5}, {"other": 5}):
        assert list(direct.match("a.b", headers)) == []
        assert list(direct.match("a.*", headers)) == [queue]
        assert list(topic.match("a.b", headers)) == [queue]
        assert list(fanout.match("", headers)) == [queue]
    for made in (direct, topic, fanout):
        assert made.unbind(queue, "a.*", {})
        assert list(made.match("a.*", None)) == []


def test_a_message_that_waits_goes_to_the_delay_queue_alone() -> None:
    for inner in INNER:
        made, waiting = delayed(inner)
        made.bind(FakeQueue("q"), "1", {})
        assert list(made.match("1", {"x-delay": 1})) == [waiting]
        assert list(made.match("other", {"x-delay": "9"})) == [waiting]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("soon", "'soon' of type longstr for exchange 'x' in vhost '/': milliseconds are needed"),
        (True, "'true' of type bool for exchange 'x' in vhost '/': milliseconds are needed"),
        (2**32, "'4294967296' of type long for exchange 'x' in vhost '/': 4294967295 millis"),
        (-(2**32), "'-4294967296' of type long for exchange"),
    ],
)
def test_a_bad_delay_is_refused(value: FieldValue, text: str) -> None:
    made, _ = delayed()
    with pytest.raises(ChannelError) as refused:
        made.match("a", {"x-delay": value})
    assert refused.value.code == 406
    assert f"invalid header 'x-delay' {text}" in str(refused.value)


def test_no_answer_is_remembered() -> None:
    made, waiting = delayed("fanout")
    queue = FakeQueue("q")
    made.bind(queue, "", {})
    route = resolve(made, ["k"], None, exchange_by_name=lambda _: None, watched=False)
    assert (route.queues, route.each_message, route.uses_headers) == ((queue,), True, True)
    held = resolve(made, ["k", "l"], {"x-delay": 5}, exchange_by_name=lambda _: None, watched=False)
    assert held.queues == (waiting,)


def test_before_an_alternate_exchange_it_waits() -> None:
    made, waiting = delayed(alternate_exchange="other")
    made.alternate = "other"
    other, queue = exchange("fanout", "other"), FakeQueue("q")
    other.bind(queue, "", {})
    for headers, found in (({"x-delay": 5}, waiting), ({"x-delay": 0}, queue)):
        route = resolve(made, ["k"], headers, exchange_by_name=lambda _: other, watched=False)
        assert route.queues == (found,)
