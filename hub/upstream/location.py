"""Where a topic is subscribed to; light to import, for those who only pass it on."""

from __future__ import annotations

from dataclasses import dataclass

from ...core.errors import WarrenError


class UpstreamFailed(WarrenError):
    """Another hub, or a topic, does not do what a subscription needs; the text says what."""


@dataclass(frozen=True, slots=True)
class TopicLocation:
    """A hub, and the name that the topic has there."""

    hub_url: str
    topic: str
