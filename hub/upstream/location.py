"""The hub of a topic; apart from the client, which is slow to import."""

from __future__ import annotations

from dataclasses import dataclass

from ...core.errors import WarrenError


class UpstreamFailed(WarrenError):
    """Discovery failed, or a hub refused a request; the text has the reason."""


@dataclass(frozen=True, slots=True)
class TopicLocation:
    """A hub, and the topic's URL there."""

    hub_url: str
    topic: str
