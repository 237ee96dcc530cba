"""The place of a document: a feed or an output by its name, in one of the formats."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple, cast
from urllib.parse import quote, unquote

if TYPE_CHECKING:
    from ..formats.media_types import Format

_PATH: Final = re.compile(r"(?:/([^/]*))?/feeds/([^/]*)\.(atom|rss|json)")


class DocumentKey(NamedTuple):
    """A feed or an output of a virtual host, which share their names."""

    vhost: str
    name: str


class DocumentPlace(NamedTuple):
    """One of the documents of a place."""

    place: DocumentKey
    format: Format

    @property
    def path(self) -> str:
        """The canonical path below the base path; the virtual host `/` is left out. It is also the
        routing key of the document's topic."""
        vhost, name = self.place
        prefix = "" if vhost == "/" else "/" + quote(vhost, safe="")
        return f"{prefix}/feeds/{quote(name, safe='')}.{self.format}"


def read_path(path: str) -> DocumentPlace | None:
    """Returns the document of a path as it was sent, each segment decoded once; None for another
    path."""
    found = _PATH.fullmatch(path)
    if found is None:
        return None
    vhost = "/" if found[1] is None else unquote(found[1])
    return DocumentPlace(DocumentKey(vhost, unquote(found[2])), cast("Format", found[3]))
