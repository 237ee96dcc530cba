"""Reads JSON Feed 1.0 and 1.1."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ..links.json_feed import NO_JSON
from ..links.json_feed import VERSION as VERSIONS
from .dates import normalised
from .html_text import absolute, with_absolute_links
from .identity import identified
from .model import (
    Attachment,
    Author,
    FeedHead,
    FeedHub,
    Item,
)
from .read_feed import MAX_ITEMS, MAX_LISTED, MORE_ITEMS, PollHints, ReadFailure, ReadFeed

NO_FEED = ReadFailure("it is JSON, but no JSON Feed")
HALVES = "a text was cut inside a character, of which the half is left out"
_MAX_REASON = 500
_MARK = b"\xef\xbb\xbf"
_SURROGATES = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
"""References to code units of UTF-16: one alone is no character, so msgspec refuses it."""


class _JsonFeedDocument(msgspec.Struct):
    version: Any = None
    items: list[msgspec.Raw] = msgspec.field(default_factory=list)


def read_json_feed(url: str, body: bytes) -> ReadFeed | ReadFailure:
    """Returns the feed, or why there is none.

    Members of other types than they should have count as absent, with a notice (JSON Feed 1.1,
    Suggestions for Feed Readers).
    """
    body = body.removeprefix(_MARK)
    whole = _SURROGATES.sub(_without_half, body) if b"\\ud" in body.lower() else body
    try:
        document = msgspec.json.decode(whole, type=_JsonFeedDocument)
        if not (isinstance(document.version, str) and document.version.startswith(VERSIONS)):
            return NO_FEED
        members = {
            name: msgspec.json.decode(raw)
            for name, raw in msgspec.json.decode(whole, type=dict[str, msgspec.Raw]).items()
            if name != "items"
        }
        items = [msgspec.json.decode(raw) for raw in document.items[:MAX_ITEMS]]
    except msgspec.ValidationError:
        return NO_FEED
    except NO_JSON as error:
        return ReadFailure(f"it can't be read as JSON: {error}"[:_MAX_REASON])
    reader = _JsonFeedReader(url)
    head = reader.head(members)
    found = identified([reader.item(one) for one in items if isinstance(one, dict)])
    if len(items) > sum(isinstance(one, dict) for one in items):
        reader.notices["an item is no object, and left out"] = None
    if len(document.items) > MAX_ITEMS:
        reader.notices[MORE_ITEMS] = None
    if whole != body:
        reader.notices[HALVES] = None
    return ReadFeed(
        format="json",
        version=f"JSON Feed {document.version.removeprefix(VERSIONS)}"[:40],
        head=head,
        items=found,
        hints=PollHints(),
        self_url=head.feed_url,
        hub_urls=tuple(one.url for one in head.hubs if one.type.lower() == "websub"),
        notices=tuple(reader.notices),
    )


def _without_half(found: re.Match[bytes]) -> bytes:
    return b"" if found["half"] else found[0]


class _JsonFeedReader:
    """Turns members into the model; each invalid one becomes a notice."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.notices: dict[str, None] = {}

    def head(self, members: dict[str, Any]) -> FeedHead:
        own = members.get("_warren")
        own = own if isinstance(own, dict) else {}
        head = FeedHead(
            title=self._text(members, "title"),
            home_page_url=self._link(members, "home_page_url"),
            feed_url=self._link(members, "feed_url"),
            description=self._text(members, "description"),
            user_comment=self._text(members, "user_comment"),
            icon=self._link(members, "icon"),
            favicon=self._link(members, "favicon"),
            language=self._text(members, "language"),
            authors=self._authors(members),
            tags=self._texts(own, "tags"),
            copyright=self._text(own, "copyright"),
            expired=members.get("expired") is True,
            extensions={
                name: value for name, value in _extensions(members).items() if name != "_warren"
            },
        )
        for one in self._objects(members, "hubs"):
            if place := self._link(one, "url"):
                head.hubs.append(FeedHub(self._text(one, "type"), place))
        return head

    def item(self, members: dict[str, Any]) -> Item:
        url = self._link(members, "url")
        markup = self._text(members, "content_html")
        return Item(
            id=self._id(members.get("id")),
            url=url,
            external_url=self._link(members, "external_url"),
            title=self._text(members, "title"),
            content_html=with_absolute_links(markup, url or self._url),
            content_text=self._text(members, "content_text"),
            summary=self._text(members, "summary"),
            image=self._link(members, "image"),
            banner_image=self._link(members, "banner_image"),
            date_published=self._date(members, "date_published"),
            date_modified=self._date(members, "date_modified"),
            authors=self._authors(members),
            tags=self._texts(members, "tags"),
            language=self._text(members, "language"),
            attachments=self._attachments(members),
            extensions=_extensions(members),
        )

    def _id(self, value: Any) -> str:
        """Returns the id of an item, a number as a text: generators of version 1.0 wrote such
        ids."""
        if value is None or isinstance(value, str):
            return value or ""
        return msgspec.json.encode(value).decode()

    def _authors(self, members: dict[str, Any]) -> list[Author]:
        """Returns `authors`, or `author` of version 1.0."""
        objects = self._objects(members, "authors")
        if not objects and isinstance(members.get("author"), dict):
            objects = [members["author"]]
        found = [
            Author(self._text(one, "name"), self._link(one, "url"), self._link(one, "avatar"))
            for one in objects
        ]
        return [one for one in found if one != Author()]

    def _attachments(self, members: dict[str, Any]) -> list[Attachment]:
        found = []
        for one in self._objects(members, "attachments"):
            if place := self._link(one, "url"):
                kind = self._text(one, "mime_type") or "application/octet-stream"
                size, duration = _number(one, "size_in_bytes"), _number(one, "duration_in_seconds")
                whole = None if size is None else int(size)
                found.append(Attachment(place, kind, self._text(one, "title"), whole, duration))
        return found

    def _text(self, members: dict[str, Any], name: str) -> str:
        value = members.get(name)
        if value is None or isinstance(value, str):
            return value or ""
        self._note(name, "text")
        return ""

    def _link(self, members: dict[str, Any], name: str) -> str:
        return absolute(self._url, self._text(members, name))

    def _date(self, members: dict[str, Any], name: str) -> str:
        text = self._text(members, name)
        date = normalised(text)
        if text and not date:
            self._note(name, "date of RFC 3339")
        return date

    def _list(self, members: dict[str, Any], name: str) -> list[Any]:
        value = members.get(name)
        if value is None or isinstance(value, list):
            return (value or [])[:MAX_LISTED]
        self._note(name, "array")
        return []

    def _texts(self, members: dict[str, Any], name: str) -> list[str]:
        return [one for one in self._list(members, name) if isinstance(one, str) and one]

    def _objects(self, members: dict[str, Any], name: str) -> list[dict[str, Any]]:
        return [one for one in self._list(members, name) if isinstance(one, dict)]

    def _note(self, name: str, kind: str) -> None:
        self.notices[f"a member '{name}' is no {kind}, and left out"] = None


def _extensions(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if name.startswith("_")}


def _number(members: dict[str, Any], name: str) -> float | None:
    value = members.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return value if 0 < value < 1e15 else None
