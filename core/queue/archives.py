"""The archives of a stream: the offset that each has reached, and the floor of retention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from ..definitions.archives import ArchiveReport, ArchiveReports
from ..errors import precondition_failed

if TYPE_CHECKING:
    from .context import QueueContext

NO_FLOOR: Final = 2**63 - 1
ARCHIVES_MAX: Final = 100
"""Archives of one stream: each report is a fact in the log."""


class ArchiveProgress:
    """The archives of one stream by name."""

    __slots__ = ("_reports", "_stored")

    def __init__(self, broker: QueueContext, queue_id: int) -> None:
        self._stored = ArchiveReports(broker.facts, queue_id)
        self._reports = self._stored.load()

    @property
    def reports(self) -> Mapping[str, ArchiveReport]:
        return self._reports

    def floor(self, archive: str | None) -> int:
        """Returns the offset from which on everything is kept for this archive: 0, so that nothing
        is dropped, before its first report."""
        if archive is None:
            return NO_FLOOR
        report = self._reports.get(archive)
        return 0 if report is None else report.offset

    def put(self, archive: str, report: ArchiveReport) -> int:
        """Stores a report, and returns a commit number. Raises `ChannelError` 406 for one archive
        too many."""
        if archive not in self._reports and len(self._reports) >= ARCHIVES_MAX:
            raise precondition_failed(
                f"there are {len(self._reports)} archives of this stream, the limit is "
                f"{ARCHIVES_MAX}: delete one that has ended"
            )
        self._reports[archive] = report
        return self._stored.store(archive, report)

    def remove(self, archive: str) -> int:
        """Forgets an archive, and returns a commit number, 0 if there is none of that name."""
        self._reports.pop(archive, None)
        return self._stored.drop(archive)
