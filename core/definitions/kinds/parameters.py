"""Definitions of parameters: settings for components that read them, stored as they were given."""

from __future__ import annotations

from typing import NamedTuple, Self

from ..fields import VERSION, FieldReader, text
from ..keys import DefinitionKind, key_of


class ParameterDefinition(NamedTuple):
    """A parameter of a component in a virtual host; its value is JSON."""

    component: str
    vhost: str
    name: str
    value_json: str

    @property
    def names(self) -> tuple[str, ...]:
        return self.component, self.name

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


class GlobalParameterDefinition(NamedTuple):
    """A parameter of the whole server; its value is JSON."""

    name: str
    value_json: str

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    def key(self) -> bytes:
        return key_of(DefinitionKind.GLOBAL_PARAMETER, self.name)

    def value(self) -> bytes:
        return VERSION + text(self.value_json)

    @classmethod
    def decode(cls, key: FieldReader, value: FieldReader) -> Self:
        return cls(key.text(), value.text())

    def description(self) -> str:
        return f"global parameter '{self.name}'"
