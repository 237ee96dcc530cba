"""Errors of requests about feeds."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import HubError
from ..formats.read_feed import Candidate

_SHOWN = 10
"""Candidates whose URLs are in the text; all of them are in the document."""


class NoSuchFeed(HubError):
    """There is no feed of this name, or none that the user may see."""

    status = 404
    title = "Not found"

    def __init__(self, name: str) -> None:
        super().__init__(f"no feed '{name}'", field="name", value=name)


class NotYourFeed(HubError):
    """A private feed is another user's."""

    status = 403
    title = "Not the owner"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"feed '{name}' is private: its owner and administrators change, poll and remove it",
            field="name", value=name,
        )  # fmt: skip


class RegistrationRefused(HubError):
    """The URL can't be registered: nothing can be fetched there, or it is no feed."""

    status = 422
    title = "Not a feed"


class UrlRefused(HubError):
    """The hub sends no requests to this URL."""

    status = 422
    title = "URL refused"


class FeedExists(HubError):
    """The name is taken, or the URL is registered already."""

    status = 409
    title = "Feed exists"


class TooManyFeeds(HubError):
    """The user has as many feeds as one may have."""

    status = 403
    title = "Too many feeds"


class SeveralFeeds(HubError):
    """A page names several feeds, of which the user has to choose one."""

    status = 300
    title = "Several feeds"

    def __init__(self, url: str, candidates: Sequence[Candidate]) -> None:
        listed = [
            {"url": one.url, "title": one.title, "type": one.media_type} for one in candidates
        ]
        urls = ", ".join(one.url for one in candidates[:_SHOWN])
        super().__init__(
            f"the page names {len(candidates)} feeds; register one of them: {urls}",
            field="url", value=url, members={"candidates": listed},
        )  # fmt: skip
        self.candidates = tuple(candidates)


class NotPolled(HubError):
    """The feed can't be polled now; it will be later, without anything missing."""

    status = 503
    title = "Not polled"
    retry_after_s = 10
