"""One process at a time."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from warrenmq.app.data_directory import locked, locked_for_reading
from warrenmq.app.storage import open_store
from warrenmq.core.clock import SystemClock
from warrenmq.core.errors import ConfigError, StoreFailure
from warrenmq.core.store.disk import RealDisk
from warrenmq.core.store.offline import LOG


def test_a_directory_is_created_and_locked_again(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b"
    for _ in range(2):
        with locked(str(path)) as directory:
            assert directory == path
            assert directory.is_dir()


def test_permissions_of_the_directory(tmp_path: Path) -> None:
    made, open_to_all, shared = tmp_path / "made", tmp_path / "open", tmp_path / "shared"
    for path, mode in ((open_to_all, 0o755), (shared, 0o750)):
        path.mkdir()
        path.chmod(mode)
    for path, mode in ((made, 0o700), (open_to_all, 0o750), (shared, 0o750)):
        with locked(str(path)):
            assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    message = rf"in use by another process \(pid {os.getpid()}\)"
    with locked(str(tmp_path)), pytest.raises(ConfigError, match=message), locked(str(tmp_path)):
        pass


def test_a_directory_that_is_read_is_for_readers_alone(tmp_path: Path) -> None:
    path = str(tmp_path)
    with locked(path), pytest.raises(ConfigError, match="in use"), locked_for_reading(path):
        pass
    with locked_for_reading(path), locked_for_reading(path):
        refused = pytest.raises(ConfigError, match="is being read by `warren verify`")
        with refused, locked(path):
            pass
    with locked(path):
        pass


def test_unusable_directories_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(ConfigError, match="data directory .* it is a file"), locked(str(file)):
        pass


@pytest.mark.parametrize("target", [None, ".", "missing"])
def test_what_has_the_name_of_a_segment_and_is_none_is_named(
    tmp_path: Path, target: str | None
) -> None:
    path = tmp_path / LOG / "000000000001.log"
    path.parent.mkdir()
    path.mkdir() if target is None else path.symlink_to(target)
    with pytest.raises(ConfigError) as refused:
        open_store(tmp_path, SystemClock(), 2**26, lambda _: None)
    reason = "No such file" if target == "missing" else "it has the name of a file of the log, but"
    assert str(refused.value).startswith(f"{path}: {reason}")


def test_a_full_disk_is_a_failure_that_may_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 1, after which the Debian package's unit starts the server again."""

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(StoreFailure, match="lock: .*make room"), locked(str(tmp_path)):
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
