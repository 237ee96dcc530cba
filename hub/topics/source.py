"""Fetches topics with conditional requests, and reads the answers as documents."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...core.clock import Clock
from ...core.errors import WarrenError
from ..fetch.conditional import Validators, refusal_of, user_agent, validators_of
from ..fetch.page import FetchedPage, FetchFailed
from ..links.discovery import Links
from ..links.remote import find_links
from ..settings import HubSettings
from ..workers.pool import Workers, WorkFailed, WorkRefused
from .document import ContentRefused, TopicDocument
from .reading import read
from .topic import Topic

if TYPE_CHECKING:
    from ..fetch.fetcher import Fetcher

_CONTACT = "/hub"

log = logging.getLogger(__name__)


class TopicFailed(WarrenError):
    """A topic could not be fetched, or its content is not distributed."""

    def __init__(self, reason: str, *, wait_s: float = 0.0, is_final: bool = False) -> None:
        super().__init__(reason)
        self.wait_s = wait_s
        """How long its server does not want to be asked again."""
        self.is_final = is_final
        """Whether another try makes no sense."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """The result of a fetch; `document` is None for an unchanged topic."""

    document: TopicDocument | None
    etag: str = ""
    last_modified: str = ""


class TopicSource:
    """Fetches topics; `fetcher` makes the client at its first use."""

    def __init__(
        self,
        fetcher: Callable[[], Awaitable[Fetcher]],
        workers: Workers,
        settings: HubSettings,
        clock: Clock,
    ) -> None:
        self._fetcher = fetcher
        self._workers = workers
        self._base_urls = settings.base_urls
        self._clock = clock

    async def fetch(
        self, topic: Topic, subscribers: int, *, is_conditional: bool = True
    ) -> Fetched:
        """Fetches the topic, with `is_conditional` only if it has changed. Raises `TopicFailed`."""
        known = Validators(topic.etag, topic.last_modified) if is_conditional else Validators()
        page = await self._get(topic.url, subscribers, known)
        if known.is_confirmed(page):
            return Fetched(None, *known)
        self._require_whole(page)
        document = await self.read(topic, page.first("content-type"), page.body)
        return Fetched(document, *validators_of(page))

    async def read(self, topic: Topic, content_type: str, body: bytes) -> TopicDocument:
        """Reads content as if it had been fetched. Raises `TopicFailed`."""
        try:
            return await read(self._workers, topic, content_type, body)
        except ContentRefused as error:
            raise TopicFailed(str(error)) from error

    async def links(self, url: str) -> Links:
        """Returns the hubs and the own URL that a topic names, none if it can't be read. Raises
        `TopicFailed`."""
        page = await self._get(url, 1, Validators())
        self._require_whole(page)
        try:
            return await find_links(self._workers, page)
        except (WorkFailed, WorkRefused) as error:
            log.info("the links of topic '%s' are unknown: %s", url, error)
            return Links()

    async def _get(self, url: str, subscribers: int, known: Validators) -> FetchedPage:
        agent = user_agent(self._base_urls, _CONTACT, subscribers)
        headers = {"User-Agent": agent, **known.fields()}
        try:
            return await (await self._fetcher()).get(url, headers)
        except FetchFailed as error:
            raise TopicFailed(str(error)) from error

    def _require_whole(self, page: FetchedPage) -> None:
        refusal = refusal_of(page, self._clock.wall_s())
        if refusal is not None:
            reason, wait_s, is_gone = refusal
            raise TopicFailed(reason, wait_s=wait_s, is_final=is_gone)
