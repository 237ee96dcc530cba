"""Searches in the manifest of an archive."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from warrenmq.hub.pipeline.archived import ArchivedStream, ArchiveFolder
from warrenmq.hub.pipeline.manifest import DataFile, Manifest, ManifestCommit

ARCHIVED = ArchivedStream("/", "log", "one")


def archive(directory: Path, commits: int) -> Manifest:
    """Returns the manifest of an archive with one message in each commit."""
    directory.mkdir(exist_ok=True)
    manifest = Manifest(directory)
    for number in range(commits):
        (directory / f"{number}").write_bytes(b"")
        file = DataFile(f"{number}", 1, 0, number, number + 1)
        manifest.commit(
            f"{number}", [file], first=number, next=number + 1, details=ARCHIVED._asdict()
        )
    return manifest


def merge(manifest: Manifest, low: int, high: int) -> None:
    (manifest.directory / "merged").write_bytes(b"")
    manifest.merge(manifest.commits[low:high], [DataFile("merged", high - low, 0, low, high)])


def found_from(folder: ArchiveFolder, offset: int) -> list[ManifestCommit]:
    """Returns the commits from that with an offset on."""

    def is_reached(commit: ManifestCommit) -> bool:
        return (commit.files[-1].next or 0) > offset

    return list(folder.commits_from(is_reached))


def test_a_search_passes_over_what_was_merged(tmp_path: Path) -> None:
    """Else one among thousands of empty commits would be the first, and all behind it be read."""
    merge(archive(tmp_path, 100), 10, 90)
    folder = ArchiveFolder(str(tmp_path.parent), str(tmp_path), ARCHIVED)
    for offset, first in ((5, 5), (10, 10), (50, 10), (89, 10), (90, 90), (95, 95)):
        assert found_from(folder, offset)[0].number == first
    assert [one.number for one in found_from(folder, 50)] == [10, *range(90, 100)]


def merge_before(patch: pytest.MonkeyPatch, manifest: Manifest, read: int) -> None:
    """Merges commits before the read with this number, counted from 0."""
    reads, read_bytes = count(), Path.read_bytes

    def merging(place: Path) -> bytes:
        if next(reads) == read:
            merge(manifest, 1, 7)
        return read_bytes(place)

    patch.setattr(Path, "read_bytes", merging)


@pytest.mark.parametrize("offset", range(8))
@pytest.mark.parametrize("read", range(8))
def test_a_search_while_commits_are_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offset: int, read: int
) -> None:
    """Whichever commit it has read when they are merged, it finds what has the message."""
    for name in ("by offset", "by time"):
        directory = tmp_path / name
        manifest = archive(directory, 8)
        folder = ArchiveFolder(str(tmp_path), str(directory), ARCHIVED)
        with monkeypatch.context() as patch:
            merge_before(patch, manifest, read)
            by_offset = name == "by offset"
            found = [folder.commit_of(offset)] if by_offset else found_from(folder, offset)
        offsets = {at for one in found for at in range(one.first or 0, one.next or 0)}
        assert offsets >= ({offset} if by_offset else set(range(offset, 8)))
