"""The requests of HTTP routes to the hub, as values.

Routes read the request, authenticate, and check permissions: read on the source of a subscribe,
and write on the sink that `Shortcuts.sink` names. Everything else is checked by the hub, which
raises the errors of `hub.errors`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["x", "q"]
"""An exchange (x) or a queue (q), as in RabbitHub's paths."""

Word = Literal["exchange", "queue"]

Mode = Literal["subscribe", "unsubscribe"]


@dataclass(frozen=True, slots=True)
class Resource:
    """An exchange or a queue with a URL."""

    vhost: str
    kind: Kind
    name: str

    @property
    def word(self) -> Word:
        return "exchange" if self.kind == "x" else "queue"

    def __str__(self) -> str:
        return f"{self.word} '{self.name}' in vhost '{self.vhost}'"


@dataclass(frozen=True, slots=True)
class SubscribeRequest:
    """A subscribe or unsubscribe, with its `hub.*` parameters as they came.

    None stands for an absent parameter. `base_url` is the address at which the request reached the
    hub (scheme, host, port and base path).
    """

    source: Resource
    callback: str | None
    topic: str | None
    user: str
    base_url: str
    verify: tuple[str, ...] = ()
    """All values of `hub.verify`, which may be comma lists; none means `sync`."""
    verify_token: str | None = None
    lease_seconds: str | None = None
    secret: str | None = None
    topic_url: str = ""
    """At `/hub`, the requested topic; `topic` is then its key."""
    given: Mapping[str, str] = field(default_factory=dict)
    """The other `hub.*` parameters; only `options.PARAMETERS` are read."""
    is_administrator: bool = False
    """Whether it may change subscriptions of others."""
    client: str = ""
    """The network of an anonymous client; empty for a user."""
    longest_lease_s: int | None = None
    """How long it may last, granted or asked: as long as the token of its user. None for ever."""
    is_trusted: bool = False
    """Whether it may skip verification (`hub.verify=none`)."""


@dataclass(frozen=True, slots=True)
class SubscribeResult:
    """The result of a subscribe or unsubscribe. `verified` is False while an asynchronous
    verification runs (202), else True (204)."""

    verified: bool
    lease_seconds: int
