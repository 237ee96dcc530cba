"""Cursors: `NUMBER-TAG`, the place behind a message; the tag names its broadcast or stream. In
place of one, a stream takes the time from which on its messages are wanted."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from ..errors import BadRequest

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TEXT: Final = re.compile(r"([0-9]{1,19})(?:-([0-9a-f]{1,32}))?")


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
                "is neither NUMBER-TAG nor, for a source that keeps its messages, a time",
                field="cursor",
                value=text,
            )
        return cls(int(found[1]), found[2] or "")


def moment_ms(text: str) -> int | None:
    """Returns the milliseconds since 1970 of a time in ISO 8601, rounded up; without an offset it
    is UTC. None for what is no time, or is a cursor."""
    if _TEXT.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return -((_EPOCH - moment) // timedelta(milliseconds=1))
