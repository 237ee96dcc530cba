"""The last reports of a stream's archives, stored as facts of its queue: atomic with what retention
drops, and deleted with the stream."""

from __future__ import annotations

from typing import NamedTuple

from .facts import Facts, queue_owner
from .fields import FieldReader, number, text
from .keys import DefinitionKind


class ArchiveReport(NamedTuple):
    """An archive has all messages before `offset`. `manifest` says where it is, `wall_ms` when it
    was reported."""

    offset: int
    wall_ms: int
    manifest: str


class ArchiveReports:
    """The last report of each archive of one stream."""

    __slots__ = ("_facts", "_owner")

    def __init__(self, facts: Facts, queue_id: int) -> None:
        self._facts = facts
        self._owner = queue_owner(queue_id)

    def store(self, archive: str, report: ArchiveReport) -> int:
        value = number(report.offset) + number(report.wall_ms) + text(report.manifest)
        return self._facts.store(DefinitionKind.ARCHIVE, self._owner, archive.encode(), value)

    def drop(self, archive: str) -> int:
        return self._facts.drop(DefinitionKind.ARCHIVE, self._owner, archive.encode())

    def load(self) -> dict[str, ArchiveReport]:
        stored = self._facts.stored(DefinitionKind.ARCHIVE, self._owner)
        found = {name: _report(value) for name, value in stored.items()}
        return {name.decode(): report for name, report in found.items() if report is not None}


def _report(value: bytes) -> ArchiveReport | None:
    """Returns None for a value that can't be read: its archive counts as one without a report."""
    read = FieldReader(value)
    try:
        report = ArchiveReport(read.number(), read.number(), read.text())
        read.end()
    except ValueError:
        return None
    return report
