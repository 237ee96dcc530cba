"""Conditional requests (RFC 9110 13.1), and answers to them that have no content."""

from __future__ import annotations

from typing import NamedTuple

from ..delivery.retry import MAX_RETRY_AFTER_S, retry_after_s
from .page import FetchedPage

_MAX_VALIDATOR_CHARACTERS = 1_024
_WHOLE = (200, 203)
_NOT_MODIFIED = 304
_GONE = 410


class Validators(NamedTuple):
    """ETag and Last-Modified of an answer, as they came; empty where there are none."""

    etag: str = ""
    last_modified: str = ""

    def fields(self) -> dict[str, str]:
        """Returns the header fields that ask for content only if it has changed."""
        found = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: value for name, value in found.items() if value}

    def is_confirmed(self, page: FetchedPage) -> bool:
        """Returns whether the answer says that the content has not changed."""
        return page.status == _NOT_MODIFIED and any(self)


class Refusal(NamedTuple):
    """An answer without content: why, and how long its server does not want to be asked again."""

    reason: str
    wait_s: float
    is_gone: bool
    """Whether the server says that it is gone for good (410)."""


def validators_of(page: FetchedPage) -> Validators:
    """Returns the validators of an answer, none where they are too long or not reliable.

    A server whose content expires at once may answer 304 for content that has changed.
    """
    if page.first("expires").strip() == "0":
        return Validators()
    found = Validators(page.first("etag"), page.first("last-modified"))
    return found if max(map(len, found)) <= _MAX_VALIDATOR_CHARACTERS else Validators()


def refusal_of(page: FetchedPage, now_s: float) -> Refusal | None:
    """Returns why there is no whole content; None if there is. `now_s` is wall time."""
    if page.status in _WHOLE:
        return None
    wait_s = min(retry_after_s(page.first("retry-after"), now_s), MAX_RETRY_AFTER_S)
    return Refusal(f"its server answered {page.status}", wait_s, page.status == _GONE)


def user_agent(base_urls: tuple[str, ...], path: str, subscribers: int) -> str:
    """Returns the User-Agent field: `path` of this server tells publishers who asks."""
    about = f"+{base_urls[0]}{path}; " if base_urls else ""
    return f"Warren ({about}{subscribers} subscribers)"
