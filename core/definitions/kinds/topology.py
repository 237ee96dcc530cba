"""Definitions of exchanges, queues and bindings."""

from __future__ import annotations

from typing import Final, NamedTuple, Self

from ...message.equivalence import resource
from ...message.model import Table
from ..fields import VERSION, FieldReader, arguments, number, text
from ..keys import BYTES, DefinitionKind, key_of

_AUTO_DELETE: Final = 1
_INTERNAL: Final = 2


class ExchangeDefinition(NamedTuple):
    """A durable exchange."""

    vhost: str
    name: str
    type_name: str
    auto_delete: bool
    internal: bool
    arguments: Table

    def key(self) -> bytes:
        return key_of(DefinitionKind.EXCHANGE, self.vhost, self.name)

    def value(self) -> bytes:
        flags = _AUTO_DELETE * self.auto_delete | _INTERNAL * self.internal
        return VERSION + bytes((flags,)) + text(self.type_name) + arguments(self.arguments)

    @classmethod
    def decode(cls, key: FieldReader, value: FieldReader) -> Self:
        flags = value.flags(_AUTO_DELETE | _INTERNAL)
        return cls(
            key.text(), key.text(), value.text(), bool(flags & _AUTO_DELETE),
            bool(flags & _INTERNAL), value.arguments(),
        )  # fmt: skip

    def description(self) -> str:
        return resource("exchange", self.name, self.vhost)


class QueueDefinition(NamedTuple):
    """A durable queue; message records refer to it by its id."""

    vhost: str
    name: str
    id: int
    auto_delete: bool
    arguments: Table

    def key(self) -> bytes:
        return key_of(DefinitionKind.QUEUE, self.vhost, self.name)

    def value(self) -> bytes:
        flags = bytes((_AUTO_DELETE * self.auto_delete,))
        return VERSION + flags + number(self.id) + arguments(self.arguments)

    @classmethod
    def decode(cls, key: FieldReader, value: FieldReader) -> Self:
        auto_delete = bool(value.flags(_AUTO_DELETE))
        return cls(key.text(), key.text(), value.number(), auto_delete, value.arguments())

    def description(self) -> str:
        return resource("queue", self.name, self.vhost)


class BindingDefinition(NamedTuple):
    """A binding between a durable exchange and a durable destination. All fields are in its key."""

    vhost: str
    source: str
    to_exchange: bool
    destination: str
    routing_key: str
    arguments: Table

    def key(self) -> bytes:
        return b"".join(
            (
                BYTES[DefinitionKind.BINDING], text(self.vhost), text(self.source),
                b"\x01" if self.to_exchange else b"\x00", text(self.destination),
                text(self.routing_key), arguments(self.arguments),
            )
        )  # fmt: skip

    def ends(self) -> tuple[bytes, bytes]:
        """Returns the keys of source and destination."""
        kind = DefinitionKind.EXCHANGE if self.to_exchange else DefinitionKind.QUEUE
        source = key_of(DefinitionKind.EXCHANGE, self.vhost, self.source)
        return source, key_of(kind, self.vhost, self.destination)

    def value(self) -> bytes:
        return VERSION

    @classmethod
    def decode(cls, key: FieldReader, value: FieldReader) -> Self:
        return cls(
            key.text(), key.text(), bool(key.flags(1)), key.text(), key.text(), key.arguments()
        )

    def description(self) -> str:
        kind = "exchange" if self.to_exchange else "queue"
        return (
            f"binding of {kind} '{self.destination}' to exchange '{self.source}' by key "
            f"'{self.routing_key}' in vhost '{self.vhost}'"
        )
