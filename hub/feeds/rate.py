"""Estimates how often a feed changes, by the dates of its entries and by what polls have found."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from .schedule import DAY_S, WEEK_S

RECENT_S = 60.0
"""Younger dates don't count: some servers date all entries with the time of the request."""
USUAL_WEEKLY = 28.0
"""Entries a week that are expected of a feed without dates, in its first week here."""
_COVERING = 0.1
"""The share of older dates from which on a document shows all entries of the last week."""


class Rate(msgspec.Struct, frozen=True):
    """So many entries since a wall time."""

    count: float
    since: float

    def weekly(self, now_s: float) -> float:
        return self.count * WEEK_S / max(now_s - self.since, RECENT_S)

    def counted(self, more: float, now_s: float) -> Rate:
        """Returns the rate with more entries, of a week at most: older ones fade."""
        since = max(self.since, now_s - WEEK_S)
        share = (now_s - since) / max(now_s - self.since, RECENT_S)
        return Rate(self.count * min(share, 1.0) + more, since)


def by_dates(dates_s: Iterable[float], now_s: float) -> Rate | None:
    """Returns the rate by the dates of a document, None if none of them counts.

    A document has only the newest entries of a busy feed, so the time since its oldest one counts
    then. Equal dates tell nothing of that: they are those of a rebuilt site.
    """
    past = [one for one in dates_s if one < now_s - RECENT_S]
    recent = [one for one in past if one > now_s - WEEK_S]
    different = len(set(recent))
    if different > 1 and len(past) - len(recent) <= len(past) * _COVERING:
        return Rate(different - 1, min(recent))
    return Rate(len(recent), now_s - WEEK_S) if past else None


class Rates(msgspec.Struct, frozen=True, omit_defaults=True):
    """The known rates of a feed; none before its first poll."""

    dated: Rate | None = None
    """The rate by the dates of its last document; None where none counts."""
    seen: Rate | None = None
    """The rate by the changes that polls have found, from a day before the first one on. Beside
    dates it counts after a week."""

    def weekly(self, now_s: float) -> float | None:
        """Returns the entries a week, None while they are unknown."""
        dated = 0.0 if self.dated is None else self.dated.weekly(now_s)
        seen = 0.0 if self.seen is None else self.seen.weekly(now_s)
        if not self._is_learning(now_s):
            return max(dated, seen)
        return seen or None if self.dated is None else dated

    def expected(self, now_s: float) -> float:
        """Returns the entries a week that the next poll is planned for."""
        found = self.weekly(now_s) or 0.0
        is_guess = self.dated is None and self._is_learning(now_s)
        return max(found, USUAL_WEEKLY) if is_guess else found

    def polled(self, changes: float, now_s: float) -> Rates:
        """Returns the rates after a poll that has found so many changes."""
        seen = self.seen or Rate(0.0, now_s - DAY_S)
        dated = None if self.dated is None else self.dated.counted(0, now_s)
        return Rates(dated, seen.counted(changes, now_s))

    def _is_learning(self, now_s: float) -> bool:
        return self.seen is None or self.seen.since > now_s - WEEK_S
