"""Merges small commits of a table: a run with `--follow` makes one every few seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from ..manifest import Manifest, ManifestCommit

SMALL_BYTES: Final = 8 * 1024 * 1024
"""A commit with files of this size or more is left as it is."""
MANY: Final = 32
"""How many small commits are merged at least; at most eight times as many at once."""


def merge_small(
    manifest: Manifest, may_merge: Callable[[ManifestCommit], bool] = lambda _: True
) -> None:
    """Merges the oldest small commits that may be merged, and never the last one, which says where
    a run goes on; does nothing while there are few. Raises `OutputError` and `OSError`.
    """
    from .parquet_files import merge_files

    for run in _runs(filter(may_merge, manifest.commits[:-1])):
        if sum(bool(commit.files) for commit in run) >= MANY:
            files = [file for commit in run for file in commit.files]
            manifest.merge(run, merge_files(manifest.directory, files))
            return


def _runs(commits: Iterable[ManifestCommit]) -> Iterator[Sequence[ManifestCommit]]:
    """Yields small commits that can be merged: each begins where the one before it ends."""
    run: list[ManifestCommit] = []
    for commit in commits:
        if run and (not _continues(run[-1], commit) or len(run) == 8 * MANY):
            yield run
            run = []
        if commit.bytes >= SMALL_BYTES:
            if run:
                yield run
            run = []
        elif run or commit.files:
            run.append(commit)
    if run:
        yield run


def _continues(last: ManifestCommit, commit: ManifestCommit) -> bool:
    return (last.number + 1, last.next, last.details) == (
        commit.number,
        commit.first,
        commit.details,
    )
