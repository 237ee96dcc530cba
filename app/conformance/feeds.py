"""Generates Atom and RSS feeds for topics, and parses those that the hub delivers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ...hub.links.safe_xml import parse
from .results import Failed

ATOM = "application/atom+xml"
RSS = "application/rss+xml"
_NAMESPACE = "http://www.w3.org/2005/Atom"


@dataclass(frozen=True, slots=True)
class Entry:
    id: str
    title: str


@dataclass(slots=True)
class Read:
    """A parsed feed: text of the feed's own elements by name, and its entries."""

    own: dict[str, str] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)


def atom(url: str, entries: Iterable[Entry]) -> bytes:
    items = "".join(
        f'<entry><id>{one.id}</id><title>{one.title}</title><link href="{url}#{one.title}"/>'
        "<updated>2026-01-01T00:00:00Z</updated></entry>\n"
        for one in entries
    )
    return (
        f'<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="{_NAMESPACE}"><id>{url}</id>'
        "<title>Conformance</title><updated>2026-01-01T00:00:00Z</updated>"
        f"<author><name>Tester</name></author>\n{items}</feed>\n"
    ).encode()


def rss(url: str, entries: Iterable[Entry]) -> bytes:
    items = "".join(
        f'<item><guid isPermaLink="false">{one.id}</guid><title>{one.title}</title></item>\n'
        for one in entries
    )
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<rss version="2.0"><channel>'
        f"<title>Conformance</title><link>{url}</link><description>Checks</description>\n"
        f"{items}</channel></rss>\n"
    ).encode()


def read(body: bytes) -> Read:
    """Parses a feed. Raises `Failed` if it is not XML."""
    reader, problem = parse(body, _FeedReader)
    if problem:
        raise Failed(f"the delivered feed can't be read: {problem}")
    return reader.found


class _FeedReader:
    """The handler of `safe_xml`'s events; names are used without their namespaces."""

    def __init__(self) -> None:
        self.found = Read()
        self._open: list[str] = []
        self._entry: dict[str, str] | None = None

    def begin(self, name: str, attributes: dict[str, str], at: int) -> None:
        self._open.append(name.rpartition(" ")[2])
        if self._open[-1] in ("entry", "item"):
            self._entry = {}

    def end(self, name: str, at: int) -> None:
        if self._open.pop() in ("entry", "item") and self._entry is not None:
            given = self._entry
            identity = given.get("id", given.get("guid", ""))
            self.found.entries.append(Entry(identity, given.get("title", "")))
            self._entry = None

    def text(self, data: str) -> None:
        if not self._open or not data.strip():
            return
        into = self.found.own if self._entry is None else self._entry
        into[self._open[-1]] = into.get(self._open[-1], "") + data
