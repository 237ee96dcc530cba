"""What the HTTP routes ask of the hub, as values.

The route layer reads the request, authenticates, and checks permissions: read on the source
of a subscribe, and write on the sink that `Shortcuts.sink` names. Everything else in a
request is checked by the hub, which raises the errors of `hub.errors`.
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
    """An exchange or a queue that has a URL."""

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
    """One subscribe or unsubscribe, with its `hub.*` parameters as they came.

    None stands for an absent parameter. `base_url` is the address through which the request
    reached the hub (scheme, host, port and base path), `user` the name of who asks.
    """

    source: Resource
    callback: str | None
    topic: str | None
    user: str
    base_url: str
    verify: tuple[str, ...] = ()
    """Every `hub.verify`, each maybe a comma list; none means `sync`."""
    verify_token: str | None = None
    lease_seconds: str | None = None
    secret: str | None = None
    topic_url: str = ""
    """At `/hub`, the topic as it was asked for; `topic` is then the key that it stands for."""
    given: Mapping[str, str] = field(default_factory=dict)
    """The other `hub.*` parameters; `options.PARAMETERS` are read, all else is ignored."""
    is_administrator: bool = False
    """Whether it may change subscriptions of others."""
    client: str = ""
    """The network of an anonymous client; empty for a user."""
    is_trusted: bool = False
    """Whether it may say that a callback is not asked (`hub.verify=none`)."""


@dataclass(frozen=True, slots=True)
class SubscribeResult:
    """`verified` is False while an asynchronous verification still runs: 202, else 204."""

    verified: bool
    lease_seconds: int
