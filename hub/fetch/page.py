"""What a fetch has brought; light to import, for those who only pass it on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...core.errors import WarrenError

if TYPE_CHECKING:
    from ..sender.connection import Response


class FetchFailed(WarrenError):
    """Nothing was fetched; the text says why, without what the answer held."""


@dataclass(frozen=True, slots=True)
class Page:
    """An answer, whatever its status. The body is there, decoded, with 2xx only."""

    url: str
    """Where redirects have led."""
    status: int
    fields: tuple[tuple[str, str], ...] = ()
    """Its header fields, as ISO 8859-1, with names in lower case."""
    body: bytes = b""

    def all(self, name: str) -> list[str]:
        return [value for one, value in self.fields if one == name]

    def first(self, name: str) -> str:
        """The value of the field, "" without it."""
        return next(iter(self.all(name)), "")


def page_of(url: str, response: Response, body: bytes) -> Page:
    fields = tuple(
        (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in response.fields
    )
    return Page(url, response.status, fields, body)
