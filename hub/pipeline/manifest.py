"""The manifest of a job's directory: which files are its table.

A task or a driver that was killed leaves files behind that are whole and belong to no commit, so
the table is what the manifest names and never what lies in the directory. Each commit is a file of
its own, `_manifest/000000000017.json`, that appears as a whole once all it names is on disk.
"""

from __future__ import annotations

import logging
import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, overload

import msgspec

from .errors import OutputError
from .leftovers import MANIFEST_FOLDER, Leftovers

logger = logging.getLogger(__name__)

FOLDER: Final = MANIFEST_FOLDER
VERSION: Final = 2
"""The version of a commit that others were merged into; others have version 1."""
_NUMBERS: Final = range(10**12)


class DataFile(msgspec.Struct, frozen=True, omit_defaults=True):
    """A Parquet file; `path` is below the directory. `first` and `next` are the lowest offset in it
    and the one behind the highest, `partition` what all its rows have in common."""

    path: str
    rows: int
    bytes: int
    first: int | None = None
    next: int | None = None
    partition: dict[str, str] = {}


class ManifestCommit(msgspec.Struct, frozen=True, omit_defaults=True):
    """Files that became part of the table together. `details` are the job's own, such as the
    incarnation of its stream. With `through` the files have the rows of later commits too, up to
    this number; those count as empty, whatever they say."""

    number: int
    key: str
    at: datetime
    rows: int
    bytes: int
    files: list[DataFile]
    first: int | None = None
    next: int | None = None
    details: dict[str, Any] = {}
    through: int | None = None
    version: int = 1


class Manifest:
    """The commits of one directory. One process at a time adds to it: a second one is refused."""

    def __init__(self, directory: Path) -> None:
        """Reads the commits; a directory that is not there has none. Raises `OutputError` for one
        that can't be read."""
        self.directory = directory
        self._folder = directory / FOLDER
        self._unwritten: list[ManifestCommit] = []
        """Commits that were merged into another one, and whose own file does not say so yet."""
        self.commits = list(self._read())
        self._by_key = {commit.key: commit for commit in self.commits}
        self._leftovers = Leftovers(directory)

    @property
    def last(self) -> ManifestCommit | None:
        return self.commits[-1] if self.commits else None

    def find(self, key: str) -> ManifestCommit | None:
        """Returns the commit with this key."""
        return self._by_key.get(key)

    def files(self) -> list[DataFile]:
        return [file for commit in self.commits for file in commit.files]

    def commit(
        self,
        key: str,
        files: Iterable[DataFile],
        *,
        first: int | None = None,
        next: int | None = None,
        details: dict[str, Any] | None = None,
    ) -> ManifestCommit:
        """Adds files to the table, all or none; with a key that was committed before it changes
        nothing and returns that commit.

        The files themselves must be on disk; their directories are synced here. Now and then files
        that no commit names are removed. Raises `OutputError` if the disk refuses, or if another
        process has committed meanwhile.
        """
        found = self._by_key.get(key)
        if found is not None:
            return found
        listed = list(files)
        commit = ManifestCommit(
            number=len(self.commits), key=key, at=datetime.now(UTC), files=listed,
            rows=sum(file.rows for file in listed), bytes=sum(file.bytes for file in listed),
            first=first, next=next, details=details or {},
        )  # fmt: skip
        try:
            sync_folders(self.directory, {(self.directory / one.path).parent for one in listed})
            self._store(commit)
        except OSError as error:
            raise OutputError(f"{self._folder} can't be written: {error}") from error
        self.commits.append(commit)
        self._by_key[key] = commit
        self._tidy()
        return commit

    def merge(self, commits: Sequence[ManifestCommit], files: Iterable[DataFile]) -> None:
        """Replaces the files of consecutive commits by others with the same rows, all or none.

        The first of the commits gets them, the others become empty. What is replaced is removed an
        hour later, for whoever reads it at the moment. Raises `OutputError` if the disk refuses.
        """
        first, last, listed = commits[0], commits[-1], list(files)
        merged = msgspec.structs.replace(
            first, files=listed, rows=sum(file.rows for file in listed),
            bytes=sum(file.bytes for file in listed), next=last.next, through=last.number,
            version=VERSION,
        )  # fmt: skip
        assert merged.rows == sum(commit.rows for commit in commits), "rows are missing"
        emptied = [_emptied(commit, last.next) for commit in commits[1:]]
        try:
            sync_folders(self.directory, {(self.directory / one.path).parent for one in listed})
            for file in (file for commit in commits for file in commit.files):
                os.utime(self.directory / file.path)
            self._replace(merged)
            self._unwritten += emptied
            self._write_emptied()
        except OSError as error:
            raise OutputError(f"{self._folder} can't be written: {error}") from error
        self.commits[first.number : last.number + 1] = [merged, *emptied]
        self._by_key |= {commit.key: commit for commit in (merged, *emptied)}

    def _write_emptied(self) -> None:
        while self._unwritten:
            self._replace(self._unwritten[0])
            del self._unwritten[0]

    def _tidy(self) -> None:
        try:
            self._write_emptied()
            self._leftovers.remove(lambda: {file.path for file in self.files()})
        except OSError as error:
            logger.warning("files of killed tasks can't be removed: %s", error)

    def _store(self, commit: ManifestCommit) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        place, written = self._written(commit)
        try:
            # A rename would replace a commit that another process has made meanwhile.
            os.link(written, place)
        except FileExistsError:
            raise OutputError(
                f"{place} was written by another run: two can't use {self.directory} at a time"
            ) from None
        finally:
            written.unlink()
        sync_folders(self.directory, {self._folder})

    def _replace(self, commit: ManifestCommit) -> None:
        place, written = self._written(commit)
        written.replace(place)
        sync_folders(self.directory, {self._folder})

    def _written(self, commit: ManifestCommit) -> tuple[Path, Path]:
        """Returns where the commit belongs, and a file beside that has it, on disk."""
        place = _place(self._folder, commit.number)
        written = place.with_suffix(f".{os.getpid()}.tmp")
        with written.open("wb") as file:
            file.write(msgspec.json.encode(commit))
            file.flush()
            os.fsync(file.fileno())
        return place, written

    def _read(self) -> Iterator[ManifestCommit]:
        """Yields the commits, whose numbers have no gap."""
        count = len({path.name for path in self._listed()})
        # The last one first: while others are merged, which makes a commit longer before those
        # behind it become empty, rows are read twice, which is noticed below, and never missed.
        read = [_load(_place(self._folder, number)) for number in reversed(range(count))]
        through, next = -1, None
        for number, commit in enumerate(reversed(read)):
            if number > through and commit.through is not None:
                through, next = commit.through, commit.next
            elif number <= through and commit != _emptied(commit, next):
                # A run was killed when it had merged them.
                commit = _emptied(commit, next)
                self._unwritten.append(commit)
            yield commit

    def _listed(self) -> list[Path]:
        try:
            return [path for path in self._folder.iterdir() if path.suffix == ".json"]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise OutputError(f"{self._folder} can't be read: {error}") from error


class StoredCommits(Sequence[ManifestCommit]):
    """The commits of a directory as they are now, each read when it is asked for: an archive has
    many, and a search among them needs few. Raises `OutputError` for one that can't be read."""

    def __init__(self, directory: Path) -> None:
        self._folder = directory / FOLDER
        self._count = bisect_left(_NUMBERS, True, key=self._is_missing)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> ManifestCommit: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[ManifestCommit]: ...
    def __getitem__(self, index: int | slice) -> ManifestCommit | Sequence[ManifestCommit]:
        numbers = range(self._count)[index]
        if isinstance(numbers, int):
            return _load(_place(self._folder, numbers))
        return [_load(_place(self._folder, number)) for number in numbers]

    def _is_missing(self, number: int) -> bool:
        return not _place(self._folder, number).exists()


def _emptied(commit: ManifestCommit, at: int | None) -> ManifestCommit:
    """Returns a commit whose rows are in an earlier one, which ends at this offset."""
    return msgspec.structs.replace(
        commit, files=[], rows=0, bytes=0, first=at, next=at, through=None
    )


def _load(place: Path) -> ManifestCommit:
    try:
        commit = msgspec.json.decode(place.read_bytes(), type=ManifestCommit)
    except (OSError, msgspec.DecodeError) as error:
        raise OutputError(f"commit {place} can't be read: {error}") from error
    if commit.version > VERSION:
        raise OutputError(
            f"commit {place} has version {commit.version}, this Warren reads {VERSION}: "
            "install a newer one"
        )
    return commit


def _place(folder: Path, number: int) -> Path:
    return folder / f"{number:012}.json"


def files(directory: str | Path) -> list[str]:
    """Returns the paths of the files of a table, for `spark.read.parquet(*files(DIR))`,
    `pyarrow.parquet.read_table(path)` of each, and `duckdb.read_parquet(files(DIR))`.

    Raises `OutputError` if the directory has no manifest.
    """
    place = Path(directory)
    if not (place / FOLDER).is_dir():
        raise OutputError(f"{place} has no {FOLDER}: give the directory that a job has written")
    return [str(place / file.path) for file in Manifest(place).files()]


def sync_folders(top: Path, folders: Iterable[Path]) -> None:
    """Puts the names in these folders, and those of the folders themselves up to `top`, on disk."""
    wanted = {one for folder in folders for one in (folder, *folder.parents)}
    for folder in wanted:
        if folder == top or top in folder.parents:
            _sync_folder(folder)
    _sync_folder(top)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
