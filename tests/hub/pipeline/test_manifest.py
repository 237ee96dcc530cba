"""What a job's table is, whatever else lies in its directory, and after a crash at any step."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import asdict

from warrenmq.hub.pipeline.errors import OutputError
from warrenmq.hub.pipeline.leftovers import GRACE_S
from warrenmq.hub.pipeline.manifest import DataFile, Manifest, StoredCommits, files


class Crash(BaseException):
    """As a kill: nothing behind it runs but what the interpreter insists on."""


def data(directory: Path, name: str, first: int = 0) -> DataFile:
    place = directory / "day=1" / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(b"rows")
    return DataFile(f"day=1/{name}", 10, 4, first, first + 10, {"day": "1"})


def names(directory: Path) -> list[str]:
    return [Path(path).name for path in files(directory)]


def test_a_repeated_commit_adds_nothing(tmp_path: Path) -> None:
    manifest = Manifest(tmp_path)
    once = manifest.commit("q/0", [data(tmp_path, "a")], first=0, next=10, details={"of": "s"})
    assert manifest.commit("q/0", [data(tmp_path, "again")]) == once
    manifest.commit("q/1", [data(tmp_path, "b", 10), data(tmp_path, "c", 20)])
    read = Manifest(tmp_path)
    assert read.commits == manifest.commits
    assert read.find("q/0") == once and read.find("q/2") is None
    assert [(one.number, one.rows, one.bytes) for one in read.commits] == [(0, 10, 4), (1, 20, 8)]
    assert (once.first, once.next, once.details) == (0, 10, {"of": "s"})
    assert names(tmp_path) == ["a", "b", "c"]


class Disk:
    """Lets so many changes of the disk happen, and then none any more."""

    def __init__(self, patch: pytest.MonkeyPatch, changes: int) -> None:
        self.left = changes
        for owner, name in ((os, "fsync"), (os, "link"), (os, "utime")):
            patch.setattr(owner, name, self.guarded(getattr(owner, name)))
        for name in ("mkdir", "open", "unlink", "replace"):
            patch.setattr(Path, name, self.guarded(getattr(Path, name)))

    def guarded(self, change: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*given: Any, **named: Any) -> Any:
            self.left -= 1
            if self.left < 0:
                raise Crash
            return change(*given, **named)

        return wrapper


def test_a_crash_at_any_step_leaves_all_of_a_commit_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    survived = []
    for changes in range(20):
        table = tmp_path / str(changes)
        Manifest(table).commit("q/0", [data(table, "a")])
        listed = [data(table, "b", 10), data(table, "c", 20)]
        with monkeypatch.context() as patch, suppress(Crash):
            Disk(patch, changes)
            Manifest(table).commit("q/1", listed)
        survived.append(len(Manifest(table).commits) - 1)
        assert names(table) == ["a", "b", "c"][: 1 + 2 * survived[-1]]
        Manifest(table).commit("q/1", listed)
        assert names(table) == ["a", "b", "c"]
    assert survived == sorted(survived) and set(survived) == {0, 1}


@pytest.mark.parametrize("before", range(5))
def test_a_reader_while_commits_are_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    """Whichever of the commits it has read when they are merged, it has all rows once."""
    manifest = Manifest(tmp_path)
    for number, name in enumerate("abcd"):
        manifest.commit(name, [data(tmp_path, name)], first=10 * number, next=10 * number + 10)
    together = [DataFile(**{**asdict(data(tmp_path, "abcd")), "rows": 40})]
    reads, read_bytes = count(), Path.read_bytes

    def merged_between(place: Path) -> bytes:
        if next(reads) == before:
            manifest.merge(manifest.commits, together)
        return read_bytes(place)

    monkeypatch.setattr(Path, "read_bytes", merged_between)
    assert sum(file.rows for file in Manifest(tmp_path).files()) == 40


def test_a_crash_at_any_step_of_merging_changes_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    merged = []
    for changes in range(30):
        table = tmp_path / str(changes)
        manifest = Manifest(table)
        for number, name in enumerate("abcd"):
            part = data(table, name, 10 * number)
            manifest.commit(name, [part], first=10 * number, next=10 * number + 10)
        together = [DataFile(**{**asdict(data(table, "bc", 10)), "rows": 20, "next": 30})]
        with monkeypatch.context() as patch, suppress(Crash):
            Disk(patch, changes)
            manifest.merge(manifest.commits[1:3], together)
        read = Manifest(table)
        merged.append(len(read.commits[1].files[0].path) == len("day=1/bc"))
        assert names(table) == (["a", "bc", "d"] if merged[-1] else ["a", "b", "c", "d"])
        assert sum(commit.rows for commit in read.commits) == 40
        # The next commit writes down what is still to be.
        read.commit("e", [data(table, "e", 40)], first=40, next=50)
        assert list(StoredCommits(table)) == read.commits == Manifest(table).commits
        bounds = [(commit.first, commit.next) for commit in read.commits]
        parts = [(10, 30), (30, 30)] if merged[-1] else [(10, 20), (20, 30)]
        assert bounds == [(0, 10), *parts, (30, 40), (40, 50)]
        assert read.find("c") is not None
    assert merged == sorted(merged) and set(merged) == {False, True}


def test_files_without_a_commit_are_not_in_the_table(tmp_path: Path) -> None:
    Manifest(tmp_path).commit("q/0", [data(tmp_path, "a")])
    data(tmp_path, "of a task that was killed")
    (tmp_path / "_manifest" / "000000000001.77.tmp").write_bytes(b"{")
    assert names(tmp_path) == ["a"]


def test_two_processes_can_not_commit_to_one_table(tmp_path: Path) -> None:
    one, other = Manifest(tmp_path), Manifest(tmp_path)
    one.commit("q/0", [data(tmp_path, "a")])
    with pytest.raises(OutputError, match="was written by another run: two can't use"):
        other.commit("r/0", [data(tmp_path, "b")])
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("000000000000.json", b"{", "commit .*/000000000000.json can't be read"),
        ("000000000001.json", b"{}", "commit .*/000000000000.json can't be read: .*No such file"),
        (
            "000000000000.json",
            b'{"number":0,"key":"","at":"2026-01-01T00:00:00Z","rows":0,"bytes":0,"files":[],'
            b'"version":3}',
            "has version 3, this Warren reads 2",
        ),
    ],
)
def test_a_manifest_that_can_not_be_read(
    tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    place = tmp_path / "_manifest" / name
    place.parent.mkdir()
    place.write_bytes(content)
    with pytest.raises(OutputError, match=reason):
        files(tmp_path)


def test_a_directory_without_a_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="has no _manifest: give the directory that a job"):
        files(tmp_path)


def test_old_files_of_killed_tasks_are_removed(tmp_path: Path) -> None:
    def file(name: str, age_s: float) -> DataFile:
        found = data(tmp_path, name)
        at_s = time.time() - age_s
        os.utime(tmp_path / found.path, (at_s, at_s))
        return found

    committed = file(f"{'1' * 32}.parquet", 2 * GRACE_S)
    left = file(f"{'2' * 32}.parquet", 2 * GRACE_S)
    young = file(f"{'3' * 32}.parquet", GRACE_S / 2)
    foreign = file("mine.parquet", 2 * GRACE_S)
    inner = file(f"other/{'4' * 32}.parquet", 2 * GRACE_S)
    (tmp_path / "day=1/other/_manifest").mkdir()
    Manifest(tmp_path).commit("q/0", [committed])
    kept = {(tmp_path / one.path) for one in (committed, young, foreign, inner)}
    assert set(tmp_path.rglob("*.parquet")) == kept
    assert not (tmp_path / left.path).exists()


def test_merged_files_are_removed_an_hour_later(tmp_path: Path) -> None:
    def age(file: DataFile) -> None:
        at_s = time.time() - 2 * GRACE_S
        os.utime(tmp_path / file.path, (at_s, at_s))

    manifest, parts = Manifest(tmp_path), [data(tmp_path, f"{one * 32}.parquet") for one in "12"]
    for number, part in enumerate(parts):
        age(part)
        manifest.commit(f"q/{number}", [part])
    both = data(tmp_path, f"{'3' * 32}.parquet")
    manifest.merge(manifest.commits, [DataFile(both.path, 20, 4)])
    Manifest(tmp_path).commit("q/2", [])
    assert all((tmp_path / part.path).exists() for part in parts)
    for part in parts:
        age(part)
    Manifest(tmp_path).commit("q/3", [])
    assert [*tmp_path.rglob("*.parquet")] == [tmp_path / both.path]
