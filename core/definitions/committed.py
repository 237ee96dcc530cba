"""The last committed transactions of a virtual host, stored as its facts."""

from __future__ import annotations

from typing import Final, NamedTuple

from .facts import Facts, vhost_owner
from .fields import FieldReader, number
from .keys import DefinitionKind

SERIES_MAX: Final = 10_000
"""Series of transactions that are remembered of a user in a virtual host; each takes some 200
bytes."""
_KIND: Final = DefinitionKind.TRANSACTION


class CommittedTransaction(NamedTuple):
    """The last transaction committed in a series, its messages, and when (wall clock)."""

    number: int
    messages: int
    wall_ms: int


class CommittedTransactions:
    """The last committed transaction of each series of a virtual host.

    A series numbers its transactions upwards, so its last number tells all that were committed. Its
    name begins with its user's, up to a NUL: no user makes the series of others forgotten.
    """

    __slots__ = ("_facts", "_owner", "_series")

    def __init__(self, facts: Facts, vhost: str) -> None:
        self._facts = facts
        self._owner = vhost_owner(vhost)
        self._series: dict[bytes, dict[bytes, None]] = {}
        """Those of each user, in the order of their last commits."""

    def load(self) -> None:
        """Reads what an earlier process has stored."""
        stored = self._facts.stored(_KIND, self._owner)
        found = {series: _committed(value) for series, value in stored.items() if len(value) == 24}
        for series in sorted(found, key=lambda one: found[one].wall_ms):
            self._series.setdefault(_user(series), {})[series] = None

    def store(self, series: bytes, last: CommittedTransaction) -> int:
        """Stores the last one of a series; drops the user's series with the oldest if there are
        more than `SERIES_MAX`."""
        own = self._series.setdefault(_user(series), {})
        own.pop(series, None)
        own[series] = None
        if len(own) > SERIES_MAX:
            self.drop(next(iter(own)))
        return self._facts.store(_KIND, self._owner, series, b"".join(map(number, last)))

    def drop(self, series: bytes) -> int:
        """Deletes a series that has ended."""
        user = _user(series)
        own = self._series.get(user, {})
        own.pop(series, None)
        if not own:
            self._series.pop(user, None)
        return self._facts.drop(_KIND, self._owner, series)

    def last(self, series: bytes) -> CommittedTransaction | None:
        """Returns the last one of a series; None for a series that is new or was dropped."""
        value = self._facts.value(_KIND, self._owner, series)
        return None if value is None or len(value) != 24 else _committed(value)


def _user(series: bytes) -> bytes:
    return series.partition(b"\0")[0]


def _committed(value: bytes) -> CommittedTransaction:
    read = FieldReader(value)
    return CommittedTransaction(read.number(), read.number(), read.number())
