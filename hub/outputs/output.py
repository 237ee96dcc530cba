"""An output as it is stored (`tables.OutputRow`), and its token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ...core.message.model import Table
from ..engine.own import OUTPUT_PREFIX
from ..engine.port import BindingSpec, QueueSpec
from ..feeds.stored_item import output_collection
from .definition import Definition

FIRST_OF_SOURCE: Final = 1_000
"""How many stored messages of a stream or exchange a new source begins with: documents show fewer
items."""


class OutputKey(NamedTuple):
    vhost: str
    name: str

    @property
    def collection(self) -> str:
        """The collection of its stored items; no name has a slash."""
        return output_collection(f"{self.vhost}/{self.name}")

    def __str__(self) -> str:
        return f"output '{self.name}' in vhost '{self.vhost}'"


class OutputBinding(NamedTuple):
    """A binding of the queue of an output."""

    exchange: str
    routing_key: str


class StreamPosition(NamedTuple):
    """The next offset that is read of a stream; another incarnation is another stream."""

    incarnation: str
    offset: int


@dataclass(frozen=True, slots=True)
class Output:
    """An output. Times are wall time in seconds."""

    key: OutputKey
    owner: str
    """The user whose read permissions it uses."""
    definition: Definition
    made_at: float
    changed_at: float
    """When its definition was changed last."""
    bound: frozenset[OutputBinding] = frozenset()
    """All bindings that its queue may have: while they are changed, the old and the new ones."""
    offsets: Mapping[str, StreamPosition] = field(default_factory=dict)
    """The next offset of each stream."""
    removed_at: float | None = None

    @property
    def title(self) -> str:
        return self.definition.title or self.key.name

    @property
    def queue(self) -> QueueSpec:
        return QueueSpec(OUTPUT_PREFIX + self.key.name)

    def binding(self, bound: OutputBinding) -> BindingSpec:
        """Returns the binding; an exchange that keeps messages begins with the last ones."""
        arguments: Table = {"x-tail": FIRST_OF_SOURCE}
        return BindingSpec(bound.exchange, self.queue.name, True, bound.routing_key, arguments)


@dataclass(frozen=True, slots=True)
class OutputToken:
    """The right of a partner to read the documents of an output, without the secret."""

    id: str
    digest: str
    """SHA-256 of the secret, in hex."""
    output: OutputKey
    name: str
    made_at: float
