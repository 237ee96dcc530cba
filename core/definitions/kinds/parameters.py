"""Definitions of parameters: of the server, stored as they were given, and of components of virtual
hosts, none of which exists here."""

from __future__ import annotations

from typing import Final, NamedTuple, Self

from ..fields import VERSION, FieldReader, text
from ..keys import DefinitionKind, key_of

_CHAINED: Final = "instead, hubs subscribe at others as upstreams (docs/hub.md, Connecting hubs)"
_INSTEAD: Final = {
    "shovel": "instead, a subscription passes messages on to a queue, exchange or other server "
    "(docs/hub.md, Connecting hubs)",
    "federation": _CHAINED,
    "federation-upstream": _CHAINED,
    "federation-upstream-set": _CHAINED,
}
"""What takes the place of RabbitMQ's components."""


class ParameterDefinition(NamedTuple):
    """A parameter of a component in a virtual host; its value is JSON. None is stored any more."""

    component: str
    vhost: str
    name: str
    value_json: str

    def key(self) -> bytes:
        return key_of(DefinitionKind.PARAMETER, self.vhost, self.component, self.name)

    def value(self) -> bytes:
        return VERSION + text(self.value_json)

    @classmethod
    def decode(cls, key: FieldReader, value: FieldReader) -> Self:
        vhost, component, name = key.text(), key.text(), key.text()
        return cls(component, vhost, name, value.text())

    def description(self) -> str:
        return f"{self.component} parameter '{self.name}' in vhost '{self.vhost}'"

    def why_not(self) -> str:
        """Says why it can't be held, beginning as RabbitMQ does without the plugin."""
        instead = _INSTEAD.get(self.component)
        absent = f"component {self.component} not found"
        return f"{absent}; {instead}" if instead else absent


class GlobalParameterDefinition(NamedTuple):
    """A parameter of the whole server; its value is JSON."""

    name: str
    value_json: str

    def key(self) -> bytes:
        return key_of(DefinitionKind.GLOBAL_PARAMETER, self.name)

    def value(self) -> bytes:
        return VERSION + text(self.value_json)

    @classmethod
    def decode(cls, key: FieldReader, value: FieldReader) -> Self:
        return cls(key.text(), value.text())

    def description(self) -> str:
        return f"global parameter '{self.name}'"
