"""Parameters of the server, stored for the clients that read them. Values are JSON."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from .definitions.kinds import GlobalParameterDefinition
from .errors import not_found, precondition_failed

if TYPE_CHECKING:
    from .definitions.set_aside import UnappliedDefinitions

CLUSTER_NAME: Final = "cluster_name"
"""Name of the parameter of the server with the name that RabbitMQ's clients read."""
MAX_NAME_BYTES: Final = 255
MAX_VALUE_BYTES: Final = 65_535


class ServerParameters:
    """The parameters of the server, of which one is the name of the cluster."""

    __slots__ = ("_by_name", "_node_name", "_set_aside")

    def __init__(self, set_aside: UnappliedDefinitions, node_name: str) -> None:
        self._set_aside = set_aside
        self._node_name = node_name
        self._by_name: dict[str, GlobalParameterDefinition] = {}

    def all(self) -> Collection[GlobalParameterDefinition]:
        return self._by_name.values()

    def get(self, name: str) -> GlobalParameterDefinition:
        """Returns a parameter. Raises `ChannelError` 404."""
        found = self._by_name.get(name)
        if found is None:
            raise not_found(f"no parameter '{name}'")
        return found

    def restore(self, definition: GlobalParameterDefinition) -> None:
        """Adds a parameter that was read from the store."""
        self._by_name[definition.name] = definition

    def set(self, definition: GlobalParameterDefinition) -> bool:
        """Stores a parameter; true if there was none of its name. Raises `ChannelError` 406 for a
        name or value that is too long."""
        check_parameter(definition)
        is_new = definition.name not in self._by_name
        self._set_aside.define(definition.key(), definition.value())
        self.restore(definition)
        return is_new

    def clear(self, name: str) -> None:
        """Deletes a parameter. Raises `ChannelError` 404."""
        self._set_aside.define(self.get(name).key(), None)
        del self._by_name[name]

    @property
    def cluster_name(self) -> str:
        """The name that was given to the cluster, else that of its only node."""
        found = self._by_name.get(CLUSTER_NAME)
        return str(json.loads(found.value_json)) if found else self._node_name


def check_parameter(definition: GlobalParameterDefinition) -> None:
    """Raises `ChannelError` 406 for a name or value that is too long."""
    size = len(definition.name.encode())
    if not 1 <= size <= MAX_NAME_BYTES:
        raise precondition_failed(
            f"{definition.description()}: the name has {size} bytes, not 1 to {MAX_NAME_BYTES}"
        )
    size = len(definition.value_json.encode())
    if size > MAX_VALUE_BYTES:
        raise precondition_failed(
            f"the value of {definition.description()} has {size} bytes of JSON, at most "
            f"{MAX_VALUE_BYTES}"
        )
