"""Definitions of virtual hosts, their limits and policies."""

from __future__ import annotations

from typing import Final, NamedTuple, Self

from ...message.equivalence import resource
from ...message.model import Table
from ..fields import VERSION, FieldReader, arguments, signed, text
from ..keys import DefinitionKind, key_of

WITH_PROPERTIES: Final = b"\x02"
"""The version of a virtual host with properties; one without is written as version 1."""
_NO_PROPERTIES: Final[Table] = {}


class VhostDefinition(NamedTuple):
    """A virtual host and its properties (`description`, `tags`, `default_queue_type` ...)."""

    name: str
    properties: Table = _NO_PROPERTIES

    def key(self) -> bytes:
        return key_of(DefinitionKind.VHOST, self.name)

    def value(self) -> bytes:
        return WITH_PROPERTIES + arguments(self.properties) if self.properties else VERSION

    @classmethod
    def decode(cls, key: FieldReader, value: FieldReader) -> Self:
        has_properties = value.version >= WITH_PROPERTIES
        return cls(key.text(), value.arguments() if has_properties else _NO_PROPERTIES)

    def description(self) -> str:
        return f"vhost '{self.name}'"


class VhostLimitsDefinition(NamedTuple):
    """The limits of a virtual host: numbers by name (`max-queues` ...)."""

    vhost: str
    limits: Table

    def key(self) -> bytes:
        return key_of(DefinitionKind.VHOST_LIMITS, self.vhost)

    def value(self) -> bytes:
        return VERSION + arguments(self.limits)

    @classmethod
    def decode(cls, key: FieldReader, value: FieldReader) -> Self:
        return cls(key.text(), value.arguments())

    def description(self) -> str:
        return f"limits of vhost '{self.vhost}'"


class PolicyDefinition(NamedTuple):
    """A policy: arguments for queues and exchanges with matching names."""

    vhost: str
    name: str
    pattern: str
    apply_to: str
    priority: int
    definition: Table

    def key(self) -> bytes:
        return key_of(DefinitionKind.POLICY, self.vhost, self.name)

    def value(self) -> bytes:
        head = text(self.pattern) + text(self.apply_to) + signed(self.priority)
        return VERSION + head + arguments(self.definition)

    @classmethod
    def decode(cls, key: FieldReader, value: FieldReader) -> Self:
        return cls(
            key.text(), key.text(), value.text(), value.text(), value.signed(), value.arguments()
        )

    def description(self) -> str:
        return resource("policy", self.name, self.vhost)


class OperatorPolicyDefinition(NamedTuple):
    """An operator policy, which is merged over the policy of users."""

    vhost: str
    name: str
    pattern: str
    apply_to: str
    priority: int
    definition: Table

    def key(self) -> bytes:
        return key_of(DefinitionKind.OPERATOR_POLICY, self.vhost, self.name)

    def value(self) -> bytes:
        return PolicyDefinition(*self).value()

    @classmethod
    def decode(cls, key: FieldReader, value: FieldReader) -> Self:
        return cls(*PolicyDefinition.decode(key, value))

    def description(self) -> str:
        return resource("operator policy", self.name, self.vhost)
