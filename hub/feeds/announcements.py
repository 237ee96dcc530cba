"""Changes of feeds that were announced and for which no poll has begun yet.

An announcement is also stored, as the time of the feed's next poll: a restart forgets none.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from .feed import Feed


class Announcement(NamedTuple):
    """An announced change of a feed. `at` is wall time; `is_push` whether the feed's hub or cloud
    has sent it, else its publisher."""

    at: float
    is_push: bool


class Announcements:
    """The announcements for which no poll has begun yet, by the names of feeds."""

    def __init__(self) -> None:
        self._by_name: dict[str, Announcement] = {}

    def has(self, name: str) -> bool:
        return name in self._by_name

    def add(self, name: str, one: Announcement) -> bool:
        """Notes an announcement; returns whether there was none of this feed."""
        before = self._by_name.get(name)
        if before is None:
            self._by_name[name] = one
        elif one.is_push:
            self._by_name[name] = before._replace(is_push=True)
        return before is None

    def take(self, name: str) -> Announcement | None:
        """Returns what the poll that begins now is for."""
        return self._by_name.pop(name, None)

    def due(self, feed: Feed) -> Feed:
        """Returns the feed with the time of its next poll: at once, if a change was announced since
        the last one began."""
        found = self._by_name.get(feed.name)
        return feed if found is None else replace(feed, next_at=min(feed.next_at, found.at))
