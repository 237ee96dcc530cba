"""Encoding and decoding of every kind of definition and every type of argument."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.wire.support import TABLES
from warrenmq.core.definitions.decode import BadDefinition, decode
from warrenmq.core.definitions.fields import MAX_TEXT_BYTES, FieldReader, arguments, text
from warrenmq.core.definitions.keys import DefinitionKind
from warrenmq.core.definitions.kinds import (
    BindingDefinition,
    Definition,
    ExchangeDefinition,
    GlobalParameterDefinition,
    OperatorPolicyDefinition,
    ParameterDefinition,
    PolicyDefinition,
    QueueDefinition,
    TopicPermissionDefinition,
    UserDefinition,
    UserLimitsDefinition,
    VhostDefinition,
    VhostLimitsDefinition,
)
from warrenmq.core.message.equivalence import comparable
from warrenmq.core.message.model import FieldValue, Table
from warrenmq.core.wire.tables import decode_table

from .support import DEFINITIONS


@given(DEFINITIONS)
def test_definition_round_trip(definition: Definition) -> None:
    found = decode(definition.key(), definition.value())
    assert found == definition
    assert isinstance(found, type(definition))


@given(DEFINITIONS, DEFINITIONS)
def test_keys_are_equal_only_for_the_same_object(one: Definition, other: Definition) -> None:
    assert (one.key() == other.key()) == (_object(one) == _object(other))


def _object(definition: Definition) -> tuple[object, ...]:
    match definition:
        case VhostDefinition() | UserDefinition() | GlobalParameterDefinition():
            return type(definition), definition.name
        case ParameterDefinition():
            return type(definition), *definition[:3]
        case VhostLimitsDefinition():
            return type(definition), definition.vhost
        case UserLimitsDefinition():
            return type(definition), definition.user
        case TopicPermissionDefinition():
            return type(definition), definition.user, definition.vhost, definition.exchange
        case PolicyDefinition() | OperatorPolicyDefinition():
            return type(definition), definition.vhost, definition.name
        case ExchangeDefinition() | QueueDefinition():
            return type(definition), definition.vhost, definition.name
        case BindingDefinition():
            # The table in its bytes: 1 and True are equal, but no equal arguments.
            return type(definition), *definition[:-1], arguments(definition.arguments)
        case _:
            return type(definition), definition.user, definition.vhost


@given(DEFINITIONS, st.data())
def test_a_truncated_definition_is_damaged(definition: Definition, data: st.DataObject) -> None:
    key, value = definition.key(), definition.value()
    cut = data.draw(st.integers(0, len(value) - 1))
    # A table is the last field and may be missing, and then it is empty.
    tables = [field for field in definition if isinstance(field, dict)]
    without_table = len(value) - len(arguments(tables[0])) if tables else None
    if isinstance(definition, BindingDefinition) or cut != without_table:
        assert "is damaged" in complaint(key, value[:cut])
    assert "is damaged" in complaint(key, value + b"\0")


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_any_bytes_are_refused_or_decoded(key: bytes, value: bytes) -> None:
    try:
        found = decode(key, value)
    except BadDefinition:
        return
    assert found.key()[:1] == key[:1]


def complaint(key: bytes, value: bytes) -> str:
    with pytest.raises(BadDefinition) as caught:
        decode(key, value)
    assert caught.value.key == key
    return str(caught.value)


def test_an_unknown_kind_is_refused() -> None:
    kind = max(DefinitionKind) + 1
    assert complaint(bytes((kind,)) + b"\0\1x", b"\1") == (
        f"definition 0x{kind:02x} '..x' is of a kind that this Warren does not know; "
        "start the newer one that wrote it"
    )
    assert "kind" in complaint(b"", b"\1")


def test_a_newer_version_is_refused() -> None:
    key = QueueDefinition("/", "mail", 7, False, {}).key()
    assert complaint(key, b"\2anything") == (
        "definition queue '../..mail' has version 2, this Warren knows up to 1; "
        "start the newer one that wrote it"
    )


def test_unknown_flags_are_refused() -> None:
    queue = QueueDefinition("/", "q", 7, False, {})
    assert "unknown flags 4" in complaint(queue.key(), b"\1\4" + queue.value()[2:])


# -- fields


@dataclass
class Sent:
    """A value as a client sent it."""

    raw: bytes

    @property
    def decoded(self) -> Table:
        entry = b"\1k" + self.raw
        data = len(entry).to_bytes(4, "big") + entry
        return decode_table(data, 0, len(data))[0]


SENT = [
    Sent(b"t\1"), Sent(b"b\xff"), Sent(b"B\xff"), Sent(b"s\xff\xfe"), Sent(b"u\xff\xfe"),
    Sent(b"I\x80\0\0\0"), Sent(b"i\xff\xff\xff\xff"), Sent(b"l" + b"\x80" + bytes(7)),
    Sent(b"L" + b"\xff" * 8), Sent(b"f\x3f\xc0\0\0"), Sent(b"d\x3f\xb9\x99\x99\x99\x99\x99\x9a"),
    Sent(b"D\2\0\0\0\x7b"), Sent(b"D\xff\x80\0\0\0"), Sent(b"D\0\x80\0\0\0"),
    Sent(b"S\0\0\0\2\xc3\xbc"), Sent(b"S\0\0\0\2\xff\xff"), Sent(b"x\0\0\0\2ab"), Sent(b"V"),
    Sent(b"T" + (2**32).to_bytes(8, "big")), Sent(b"T" + (2**63 - 1).to_bytes(8, "big")),
    Sent(b"A\0\0\0\x0aVL" + b"\xff" * 8), Sent(b"F\0\0\0\x0b\1aL" + b"\xff" * 8),
]  # fmt: skip


@pytest.mark.parametrize("sent", SENT, ids=lambda sent: sent.raw[:1].decode())
def test_every_field_type_is_stored(sent: Sent) -> None:
    kept = arguments(sent.decoded)
    found = FieldReader(kept).arguments()
    assert comparable(found) == comparable(sent.decoded)
    assert isinstance(found["k"], type(sent.decoded["k"]))
    assert arguments(found) == kept


@given(TABLES)
def test_bytes_of_arguments_stay_the_same_over_restarts(table: Table) -> None:
    kept = arguments(table)
    assert arguments(FieldReader(kept).arguments()) == kept


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, Decimal("NaN"), Decimal(2**31)])
def test_values_without_a_field_type_are_refused(value: FieldValue) -> None:
    with pytest.raises(ValueError, match="table value"):
        arguments({"k": value})


def test_texts_are_bounded() -> None:
    assert FieldReader(text("x" * MAX_TEXT_BYTES)).text() == "x" * MAX_TEXT_BYTES
    with pytest.raises(ValueError, match="65536 bytes: limit 65535"):
        text("x" * (MAX_TEXT_BYTES + 1))
