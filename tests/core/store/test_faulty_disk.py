"""The simulated disk of the fault tests: power cuts and lack of space."""

from __future__ import annotations

import errno
import random

import pytest

from tests.support.faulty_disk import FaultyDisk, Keep


def cut(disk: FaultyDisk, keep: Keep, seed: int = 1) -> dict[str, bytes]:
    return disk.power_cut(keep, random.Random(seed)).files()


def test_unsynced_writes_are_lost_or_kept() -> None:
    disk = FaultyDisk({"a": b"old"})
    disk.open("a").write(0, [b"ne", b"w and longer"])
    assert cut(disk, Keep.NONE) == {"a": b"old"}
    assert cut(disk, Keep.ALL) == disk.files() == {"a": b"new and longer"}


def test_a_new_file_needs_its_directory_synced_too() -> None:
    disk = FaultyDisk()
    file = disk.create("a")
    file.write(0, [b"body"])
    file.sync()
    assert cut(disk, Keep.NONE) == {}
    disk.sync_directory()
    assert cut(disk, Keep.NONE) == {"a": b"body"}


def test_renames_and_removals_need_a_synced_directory() -> None:
    disk = FaultyDisk({"a": b"1", "b": b"2", "c": b"3"})
    disk.rename("a", "b")
    disk.remove("c")
    assert disk.files() == {"b": b"1"}
    assert cut(disk, Keep.NONE) == {"a": b"1", "b": b"2", "c": b"3"}
    disk.sync_directory()
    assert cut(disk, Keep.NONE) == {"b": b"1"}


def test_full_disk_writes_as_much_as_fits() -> None:
    disk = FaultyDisk({"a": b"12345"})
    disk.capacity = 8
    with pytest.raises(OSError, match="space") as told:
        disk.open("a").write(5, [b"abcdef"])
    assert told.value.errno == errno.ENOSPC
    assert disk.files() == {"a": b"12345abc"}
    disk.open("a").write(0, [b"over"])
    with pytest.raises(OSError, match="space"):
        disk.open("a").allocate(9)
    with pytest.raises(OSError, match="space"):
        disk.create("b")
    assert disk.free_bytes() == 0
