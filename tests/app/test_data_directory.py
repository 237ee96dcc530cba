"""One process at a time."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from warrenmq.app.data_directory import locked
from warrenmq.core.errors import ConfigError
from warrenmq.core.store.disk import RealDisk


def test_made_and_given_back(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b"
    for _ in range(2):
        with locked(str(path)) as directory:
            assert directory == path
            assert directory.is_dir()


def test_nobody_else_may_look(tmp_path: Path) -> None:
    """One that was there may stay its group's."""
    made, open_to_all, shared = tmp_path / "made", tmp_path / "open", tmp_path / "shared"
    for path, mode in ((open_to_all, 0o755), (shared, 0o750)):
        path.mkdir()
        path.chmod(mode)
    for path, mode in ((made, 0o700), (open_to_all, 0o750), (shared, 0o750)):
        with locked(str(path)):
            assert stat.S_IMODE(path.stat().st_mode) == mode


def test_held_by_another(tmp_path: Path) -> None:
    message = rf"in use by another process \(pid {os.getpid()}\)"
    with locked(str(tmp_path)), pytest.raises(ConfigError, match=message), locked(str(tmp_path)):
        pass


def test_unusable(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(ConfigError, match="data directory"), locked(str(file)):
        pass


def test_directories_that_are_made_survive_a_power_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each parent is synced after its entry was made; nothing is where nothing was made."""
    synced: list[os.stat_result] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor)))
    for _ in range(2):
        with locked(str(tmp_path / "a" / "b")) as directory:
            RealDisk(directory / "log")
    parents = [tmp_path, tmp_path / "a", tmp_path / "a" / "b"]
    assert [found.st_ino for found in synced] == [parent.stat().st_ino for parent in parents]
