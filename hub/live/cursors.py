"""Cursors: where a reader goes on.

`NUMBER@TAG` is a message, and the place behind it: its offset, and the tag of its broadcast or
stream. `first@TAG` is the place before all messages. A bare number is the offset of the message to
begin at, and so is that of `NUMBER-TAG`, as earlier versions wrote cursors. In place of a cursor, a
stream takes the time from which on its messages are wanted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from ..errors import BadRequest

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TEXT: Final = re.compile(
    r"(?:(?P<last>[0-9]{1,19})@|(?P<next>[0-9]{1,19})-|first@)(?P<tag>[0-9a-f]{1,32})"
    r"|(?P<offset>[0-9]{1,19})"
)


class ResumeCursor(NamedTuple):
    """A place: the number of the message that follows. The tag is empty for a bare offset."""

    number: int
    tag: str

    def __str__(self) -> str:
        return f"{self.number - 1 if self.number else 'first'}@{self.tag}"

    @property
    def message(self) -> str:
        """The cursor of the message that follows."""
        return f"{self.number}@{self.tag}"

    @classmethod
    def read(cls, text: str) -> ResumeCursor:
        """Returns the place of a cursor; raises `BadRequest` for an invalid one."""
        found = _TEXT.fullmatch(text)
        if found is None:
            raise BadRequest(
                "is neither a cursor nor, for a source that keeps its messages, a time",
                field="cursor",
                value=text,
            )
        last, begin = found["last"], found["next"] or found["offset"] or 0
        return cls(int(last) + 1 if last else int(begin), found["tag"] or "")


def cursors_of(numbers: Iterable[int], tag: str) -> list[str]:
    """Returns the cursors of messages."""
    return [f"{number}@{tag}" for number in numbers]


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
