"""The result of a fetch; apart from the fetcher, which is slow to import."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...core.errors import WarrenError

if TYPE_CHECKING:
    from ..sender.response import Response


class FetchFailed(WarrenError):
    """A fetch has failed; the text does not show the answer."""


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """An answer with any status; it has a body, decoded, with 2xx alone."""

    url: str
    """The URL after redirects."""
    status: int
    fields: tuple[tuple[str, str], ...] = ()
    """The header fields, as ISO 8859-1, with names in lower case."""
    body: bytes = b""
    moved_to: str = ""
    """The URL to which the requested one has moved for good, by 301 or 308; empty if it has not."""

    def all(self, name: str) -> list[str]:
        """Returns the values of all fields with this name."""
        return [value for one, value in self.fields if one == name]

    def first(self, name: str) -> str:
        """Returns the value of the first field with this name, "" without any."""
        return next(iter(self.all(name)), "")


def page_of(url: str, response: Response, body: bytes) -> FetchedPage:
    """Returns a response with this body as a page."""
    fields = tuple(
        (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in response.fields
    )
    return FetchedPage(url, response.status, fields, body)
