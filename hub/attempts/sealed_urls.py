"""Callback URLs as the log of attempts stores them: sealed, for many hold what lets one post."""

from __future__ import annotations

from ..keys.seal import Sealer

MAX_REMEMBERED = 10_000


class SealedUrls:
    """Seals and opens each URL of a subscription once: a thousand attempts share the text."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer
        self._sealed: dict[tuple[str, str], str] = {}
        self._opened: dict[tuple[str, str], str] = {}

    def seal(self, url: str, subscription_id: str) -> str:
        if not url:
            return ""
        found = self._sealed.get((subscription_id, url))
        if found is None:
            # Whatever a client has sent as a URL: half a surrogate pair is no text to seal.
            text = url.encode(errors="replace").decode()
            found = self._sealer.seal(text, subscription_id)
            _remember(self._sealed, (subscription_id, url), found)
        return found

    def open(self, sealed: str, subscription_id: str) -> str:
        """An empty text for an attempt from before URLs were kept."""
        if not sealed:
            return ""
        found = self._opened.get((subscription_id, sealed))
        if found is None:
            found = self._sealer.open(sealed, subscription_id)
            _remember(self._opened, (subscription_id, sealed), found)
        return found


def _remember(found: dict[tuple[str, str], str], key: tuple[str, str], value: str) -> None:
    if len(found) >= MAX_REMEMBERED:
        found.clear()
    found[key] = value
