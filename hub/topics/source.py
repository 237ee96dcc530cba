"""Fetches topics: asks only for what is new, and reads the answer as a document."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...core.clock import Clock
from ...core.errors import WarrenError
from ..delivery.retry import MAX_RETRY_AFTER_S, retry_after_s
from ..fetch.page import FetchFailed, Page
from ..links.discovery import Links
from ..links.remote import find_links
from ..settings import HubSettings
from ..workers.pool import Workers, WorkFailed, WorkRefused
from .document import Document
from .reading import read
from .topic import Topic

if TYPE_CHECKING:
    from ..fetch.fetcher import Fetcher

_MAX_VALIDATOR = 1_024
_WHOLE = (200, 203)
_NOT_MODIFIED = 304
_GONE = 410


class TopicFailed(WarrenError):
    """The topic was not fetched, or is not distributed as it is."""

    def __init__(self, reason: str, *, wait_s: float = 0.0, is_final: bool = False) -> None:
        super().__init__(reason)
        self.wait_s = wait_s
        """How long its server wants to be left alone."""
        self.is_final = is_final
        """Whether it need not be tried again."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """`document` is None where the server says that nothing has changed."""

    document: Document | None
    etag: str = ""
    last_modified: str = ""


class Source:
    """`fetcher` makes the client at its first use."""

    def __init__(
        self,
        fetcher: Callable[[], Awaitable[Fetcher]],
        workers: Workers,
        settings: HubSettings,
        clock: Clock,
    ) -> None:
        self._fetcher = fetcher
        self._workers = workers
        self._about = f"+{settings.base_urls[0]}/hub; " if settings.base_urls else ""
        self._clock = clock

    async def fetch(
        self, topic: Topic, subscribers: int, *, is_conditional: bool = True
    ) -> Fetched:
        """Gets the topic, with `is_conditional` only if it has changed. Raises `TopicFailed`."""
        headers = {"User-Agent": f"Warren ({self._about}{subscribers} subscribers)"}
        if topic.etag and is_conditional:
            headers["If-None-Match"] = topic.etag
        if topic.last_modified and is_conditional:
            headers["If-Modified-Since"] = topic.last_modified
        page = await self._get(topic.url, headers)
        if page.status == _NOT_MODIFIED and len(headers) > 1:
            return Fetched(None, topic.etag, topic.last_modified)
        self._require_whole(page)
        document = await self.read(topic, page.first("content-type"), page.body)
        return Fetched(document, *_validators(page))

    async def read(self, topic: Topic, content_type: str, body: bytes) -> Document:
        """Raises `TopicFailed`."""
        try:
            return await read(self._workers, topic, content_type, body)
        except (WorkFailed, WorkRefused) as error:
            raise TopicFailed(str(error)) from error

    async def links(self, url: str) -> Links:
        """What a topic says of itself. Raises `TopicFailed`."""
        page = await self._get(url, {"User-Agent": f"Warren ({self._about}1 subscribers)"})
        self._require_whole(page)
        try:
            return await find_links(self._workers, page)
        except (WorkFailed, WorkRefused) as error:
            raise TopicFailed(str(error)) from error

    async def _get(self, url: str, headers: dict[str, str]) -> Page:
        try:
            return await (await self._fetcher()).get(url, headers)
        except FetchFailed as error:
            raise TopicFailed(str(error)) from error

    def _require_whole(self, page: Page) -> None:
        if page.status in _WHOLE:
            return
        wait_s = retry_after_s(page.first("retry-after"), self._clock.wall_s())
        reason = f"its server answered {page.status}"
        wait_s = min(wait_s, MAX_RETRY_AFTER_S)
        raise TopicFailed(reason, wait_s=wait_s, is_final=page.status == _GONE)


def _validators(page: Page) -> tuple[str, str]:
    """As they came. A server that lets everything expire at once is not trusted with them: it
    may say "not modified" of what has been."""
    if page.first("expires").strip() == "0":
        return "", ""
    found = page.first("etag"), page.first("last-modified")
    return found if max(map(len, found)) <= _MAX_VALIDATOR else ("", "")
