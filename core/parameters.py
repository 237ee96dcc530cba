"""Parameters of virtual hosts (by component and name) and of the server (by name), stored for the
components and clients that read them. Values are JSON.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Collection
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from .definitions.kinds import GlobalParameterDefinition, ParameterDefinition
from .errors import ChannelError, not_found, precondition_failed

if TYPE_CHECKING:
    from .definitions.set_aside import UnappliedDefinitions

logger = logging.getLogger(__name__)

CLUSTER_NAME: Final = "cluster_name"
"""Name of the parameter of the server with the name that RabbitMQ's clients read."""
MAX_NAME_BYTES: Final = 255
MAX_VALUE_BYTES: Final = 65_535

Found = TypeVar("Found", ParameterDefinition, GlobalParameterDefinition)


class Parameters(Generic[Found]):
    """The parameters of a virtual host, or of the server."""

    __slots__ = ("_by_names", "_set_aside")

    def __init__(self, set_aside: UnappliedDefinitions) -> None:
        self._set_aside = set_aside
        self._by_names: dict[tuple[str, ...], Found] = {}

    def all(self) -> Collection[Found]:
        return self._by_names.values()

    def get(self, *names: str) -> Found:
        """Returns the parameter with these `names`. Raises `ChannelError` 404."""
        found = self._by_names.get(names)
        if found is None:
            raise not_found(f"no parameter '{' '.join(names)}'")
        return found

    def restore(self, definition: Found) -> None:
        """Adds a parameter that was read from the store."""
        self._by_names[definition.names] = definition

    def set(self, definition: Found) -> bool:
        """Stores a parameter; true if there was none of its name. Raises `ChannelError` 406 for a
        name or value that is too long."""
        check_parameter(definition)
        if isinstance(definition, ParameterDefinition):
            logger.warning("%s is stored and has no effect here", definition.description())
        is_new = definition.names not in self._by_names
        self._set_aside.define(definition.key(), definition.value())
        self.restore(definition)
        return is_new

    def clear(self, *names: str) -> None:
        """Deletes a parameter. Raises `ChannelError` 404."""
        self._set_aside.define(self.get(*names).key(), None)
        del self._by_names[names]

    def clear_all(self) -> None:
        """Deletes those of a virtual host that is being deleted."""
        for names in tuple(self._by_names):
            self.clear(*names)


class ServerParameters(Parameters[GlobalParameterDefinition]):
    """The parameters of the server, of which one is the name of the cluster."""

    __slots__ = ("_node_name",)

    def __init__(self, set_aside: UnappliedDefinitions, node_name: str) -> None:
        super().__init__(set_aside)
        self._node_name = node_name

    @property
    def cluster_name(self) -> str:
        """The name that was given to the cluster, else that of its only node."""
        try:
            found = self.get(CLUSTER_NAME)
        except ChannelError:
            return self._node_name
        return str(json.loads(found.value_json))


def check_parameter(definition: ParameterDefinition | GlobalParameterDefinition) -> None:
    """Raises `ChannelError` 406 for a name or value that is too long."""
    for name in definition.names:
        size = len(name.encode())
        if not 1 <= size <= MAX_NAME_BYTES:
            raise precondition_failed(
                f"{definition.description()}: '{name}' has {size} bytes, not 1 to {MAX_NAME_BYTES}"
            )
    size = len(definition.value_json.encode())
    if size > MAX_VALUE_BYTES:
        raise precondition_failed(
            f"the value of {definition.description()} has {size} bytes of JSON, at most "
            f"{MAX_VALUE_BYTES}"
        )
