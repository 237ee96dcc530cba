"""What a test does to a broker, as plain data: the model and every driver take the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

WRITTEN_MS = 128
"""What happened before is on disk, even when nobody waits for it."""

Seat = tuple[int, int]
"""A connection's number and a channel's number on it."""


@dataclass(frozen=True)
class Call:
    """A method without content, with those of its fields that are neither zero nor empty."""

    seat: Seat
    method: str
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Publish:
    """One message as a client sends it."""

    body: bytes
    exchange: str = ""
    key: str = ""
    properties: Mapping[str, Any] = field(default_factory=dict)
    mandatory: bool = False
    immediate: bool = False


@dataclass(frozen=True)
class Publishes:
    """Messages that leave in one piece."""

    seat: Seat
    messages: tuple[Publish, ...]


@dataclass(frozen=True)
class Drop:
    """A connection is cut without a word and opened again."""

    connection: int


@dataclass(frozen=True)
class Advance:
    """Time passes."""

    by_ms: int


@dataclass(frozen=True)
class Restart:
    """The broker ends and starts again: in order, or killed `WRITTEN_MS` from now."""

    clean: bool


@dataclass(frozen=True)
class Policy:
    """A policy is set, or with no definition cleared."""

    name: str
    pattern: str = ""
    definition: Mapping[str, Any] | None = None
    priority: int = 0
    apply_to: str = "all"


Operation = Call | Publishes | Drop | Advance | Restart | Policy
