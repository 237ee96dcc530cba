"""Cursors: `NUMBER-TAG`, the place behind a message; the tag names its broadcast or stream."""

from __future__ import annotations

import re
from typing import NamedTuple

from ..errors import BadRequest

_TEXT = re.compile(r"([0-9]{1,19})(?:-([0-9a-f]{1,32}))?")


class ResumeCursor(NamedTuple):
    """A place. The tag is empty for a bare offset of a stream."""

    number: int
    tag: str

    def __str__(self) -> str:
        return f"{self.number}-{self.tag}" if self.tag else str(self.number)

    @classmethod
    def read(cls, text: str) -> ResumeCursor:
        """Returns the place of a cursor; raises `BadRequest` for an invalid one."""
        found = _TEXT.fullmatch(text)
        if found is None:
            raise BadRequest(
                "is not a valid cursor", field="cursor", value=text, limit="NUMBER-TAG"
            )
        return cls(int(found[1]), found[2] or "")
