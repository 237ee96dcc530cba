"""Queue types by name, and inner ones, which only exchanges have."""

from __future__ import annotations

import pytest

from warrenmq.core.errors import ChannelError, ConfigError
from warrenmq.core.message.model import Table
from warrenmq.core.queue import registry
from warrenmq.core.queue.arguments import Declared
from warrenmq.core.queue.classic import ClassicQueue
from warrenmq.core.queue.queue import Queue
from warrenmq.core.queue.registry import inner_name, make_queue, register_inner, register_queue
from warrenmq.core.queue.rules import PLAIN, Rules

from .support import House


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_types", dict(registry._types))
    monkeypatch.setattr(registry, "_inner_types", dict(registry._inner_types))


@pytest.fixture
def house() -> House:
    return House()


def made(house: House, name: str = "q", *, strict: bool = False, **arguments: object) -> Queue:
    table: Table = {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}  # type: ignore[misc]
    return make_queue(Declared(name, "/"), house, 7, arguments=table, strict=strict)


def test_a_queue_is_what_its_declaration_says(house: House) -> None:
    queue = make_queue(
        Declared("q", "v", durable=True, auto_delete=True), house, 7, arguments={"x-max-length": 5}
    )
    assert (queue.name, queue.vhost, queue.id) == ("q", "v", 7)
    assert (queue.durable, queue.auto_delete, queue.owner) == (True, True, None)
    assert (queue.arguments, queue.kind) == ({"x-max-length": 5}, "classic")
    assert queue.rules == queue.declared_rules == Rules(max_length=5)


def test_a_plain_one_has_no_rules(house: House) -> None:
    assert made(house).rules is None
    assert made(house, queue_type="classic").rules is None


@pytest.mark.parametrize("durable", [False, True])
def test_an_exclusive_one_has_its_owner_and_is_never_durable(house: House, durable: bool) -> None:
    owner = object()
    declared = Declared("q", "/", durable=durable, exclusive=True)
    queue = make_queue(declared, house, 7, owner=owner, arguments={})
    assert (queue.durable, queue.owner) == (False, owner)
    assert make_queue(Declared("q", "/"), house, 7, owner=owner, arguments={}).owner is None


def test_quorum_queues_have_rules_of_their_own(house: House) -> None:
    queue = made(house, queue_type="quorum")
    assert queue.kind == "quorum"
    assert queue.rules == Rules(max_priority=31, delivery_limit=20)


@pytest.mark.parametrize("kind", ["lazy", "", "delay", 5, None])
def test_there_is_no_other_type(house: House, kind: object) -> None:
    with pytest.raises(ChannelError) as caught:
        made(house, queue_type=kind)
    assert caught.value.code == 406
    assert "invalid arg 'x-queue-type' for queue 'q' in vhost '/'" in str(caught.value)


def test_strict_ones_refuse_what_is_unknown(house: House) -> None:
    assert made(house, color="red").arguments == {"x-color": "red"}
    with pytest.raises(ChannelError, match="invalid arg 'x-color' for queue 'q'"):
        made(house, strict=True, color="red")


# -- types that come later


class Odd(ClassicQueue):
    __slots__ = ()


def test_a_registered_type_is_made(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._types, "classic", Odd)
    assert type(made(house)) is Odd


@pytest.mark.parametrize("register", [register_queue, register_inner])
def test_a_name_is_given_once(register: object) -> None:
    assert callable(register)
    assert register("odd")(Odd) is Odd
    with pytest.raises(ValueError, match="'odd' is registered already"):
        register("odd")(Odd)


def test_an_inner_queue_is_made_by_its_name(house: House) -> None:
    register_inner("odd")(Odd)
    queue = make_queue(Declared(inner_name("odd", "news"), "/"), house, 7, arguments={})
    assert type(queue) is Odd
    assert queue.durable
    assert queue.rules is PLAIN


def test_an_inner_type_is_no_queue_type(house: House) -> None:
    register_inner("odd")(Odd)
    with pytest.raises(ChannelError, match="unknown queue type 'odd'"):
        made(house, queue_type="odd")


def test_an_inner_queue_of_an_unknown_type_is_said_to_be_one(house: House) -> None:
    with pytest.raises(ConfigError, match="no inner queue type 'later'"):
        make_queue(Declared(inner_name("later", "news"), "/"), house, 7, arguments={})


@pytest.mark.parametrize("exchange", ["news", "a\nb", ""])
def test_names_of_inner_queues_lead_to_kind_and_exchange(exchange: str) -> None:
    name = inner_name("odd", exchange)
    assert name.split(registry.INNER_MARK, 1) == ["odd", exchange]
