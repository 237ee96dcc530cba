"""Finds the messages of a stream in an archive. A search reads a few commits of its manifest."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from .errors import OutputError
from .manifest import FOLDER, ManifestCommit, StoredCommits


class ArchivedStream(NamedTuple):
    """The stream that an archive must be of; another one of its name has another incarnation."""

    vhost: str
    stream: str
    incarnation: str


class NotArchived(OutputError):
    """An archive does not have what is asked for, or may not be read."""


class ArchiveFolder:
    """The archive in one folder."""

    def __init__(self, top: str, place: str, wanted: ArchivedStream) -> None:
        """Raises `NotArchived` for a place that is not below the directory `top`, or has no archive
        of this stream, and `OutputError` for a manifest that can't be read."""
        self.directory = below(Path(top), place)
        self._commits = StoredCommits(self.directory)
        self._first = bisect_left(self._commits, True, key=lambda commit: _is_of(commit, wanted))
        if self._first == len(self._commits):
            raise NotArchived(
                f"{self.directory / FOLDER} has no commit of this stream, incarnation "
                f"{wanted.incarnation}"
            )

    @property
    def first_offset(self) -> int:
        return self._commits[self._first].first or 0

    @property
    def next_offset(self) -> int:
        return self._commits[-1].next or 0

    def commit_of(self, offset: int) -> ManifestCommit:
        """Returns the commit that has the message at this offset. Raises `NotArchived`."""
        found = bisect_right(
            self._commits, offset, self._first, key=lambda commit: commit.next or 0
        )
        commit = self._with_rows(self._commits[min(found, len(self._commits) - 1)])
        if not (commit.first or 0) <= offset < (commit.next or 0):
            raise NotArchived(f"{self.directory} does not have offset {offset}")
        return commit

    def commits_from(
        self, is_reached: Callable[[ManifestCommit], bool]
    ) -> Iterator[ManifestCommit]:
        """Yields the stream's commits from the first on for which `is_reached` is true, as it is
        for all behind it; those that were merged as one."""
        at = bisect_left(
            self._commits, True, self._first, key=lambda commit: is_reached(self._with_rows(commit))
        )
        while at < len(self._commits):
            commit = self._with_rows(self._commits[at])
            yield commit
            at = max(at, commit.through or 0) + 1

    def _with_rows(self, commit: ManifestCommit) -> ManifestCommit:
        """Returns the commit that has the rows of this one, which may have been merged into an
        earlier one since it was looked for: they end at the same offset."""
        if commit.files:
            return commit
        at = bisect_left(
            self._commits, commit.next or 0, self._first, commit.number,
            key=lambda one: one.next or 0,
        )  # fmt: skip
        return commit if at == commit.number else self._with_rows(self._commits[at])

    def limit(self, start: int, limit_bytes: int) -> int:
        """Returns an offset such that the files have about `limit_bytes` from `start` to it."""
        commit = self.commit_of(start)
        rows = commit.rows * limit_bytes // max(1, commit.bytes)
        return min(start + max(1, rows), commit.next or 0)


def below(top: Path, place: str) -> Path:
    """Returns a path without links. Raises `NotArchived` if it is not below `top`."""
    found, allowed = Path(place).resolve(), top.resolve()
    if not Path(place).is_absolute() or not found.is_relative_to(allowed):
        raise NotArchived(f"'{place}' is not below {allowed}")
    return found


def _is_of(commit: ManifestCommit, wanted: ArchivedStream) -> bool:
    names = ("vhost", "stream", "incarnation")
    return ArchivedStream(*(str(commit.details.get(name)) for name in names)) == wanted
