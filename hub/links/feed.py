"""The links at the top level of Atom and RSS feeds (WebSub 4)."""

from __future__ import annotations

from urllib.parse import urljoin

from .found import FoundLinks
from .safe_xml import parse

_ATOM = "http://www.w3.org/2005/Atom"
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_RSS_1 = "http://purl.org/rss/1.0/"
_LINK = f"{_ATOM} link"
_BASE = "http://www.w3.org/XML/1998/namespace base"
_PARENTS = (
    (f"{_ATOM} feed",),
    ("rss", "channel"),
    (f"{_RDF} RDF", f"{_RSS_1} channel"),
)
_DEEPEST = 3


def read_feed(body: bytes) -> FoundLinks:
    """Returns the links up to any fault. It is too slow for the event loop."""
    reader, _ = parse(body, _LinkReader)
    return reader.found


class _LinkReader:
    """Collects links while the document is parsed."""

    def __init__(self) -> None:
        self.found = FoundLinks()
        self._path: list[tuple[str, str]] = []
        """Name and base of each open element, down to `_DEEPEST`."""
        self._depth = 0

    def begin(self, name: str, attributes: dict[str, str], at: int) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            return
        base = self._path[-1][1] if self._path else ""
        if _BASE in attributes:
            base = _joined(base, attributes[_BASE])
        if name == _LINK and tuple(one for one, _ in self._path) in _PARENTS:
            self.found.add(attributes.get("rel", ""), attributes.get("href", ""), base)
        self._path.append((name, base))

    def end(self, name: str, at: int) -> None:
        if self._depth <= _DEEPEST:
            self._path.pop()
        self._depth -= 1

    def text(self, data: str) -> None: ...


def _joined(base: str, reference: str) -> str:
    """Returns the base itself if the reference is no URL."""
    try:
        return urljoin(base, reference)
    except ValueError:
        return base
