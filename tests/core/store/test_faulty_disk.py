"""The disk that the fault tests stand on: what a power cut leaves of it."""

from __future__ import annotations

import errno
import random

import pytest

from tests.support.faulty_disk import SECTOR, FaultyDisk, Keep


def cut(disk: FaultyDisk, keep: Keep, seed: int = 1) -> dict[str, bytes]:
    return disk.power_cut(keep, random.Random(seed)).files()


def test_what_is_not_synced_is_lost_or_kept() -> None:
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


def test_renames_and_removals_need_it_as_well() -> None:
    disk = FaultyDisk({"a": b"1", "b": b"2", "c": b"3"})
    disk.rename("a", "b")
    disk.remove("c")
    assert disk.files() == {"b": b"1"}
    assert cut(disk, Keep.NONE) == {"a": b"1", "b": b"2", "c": b"3"}
    disk.sync_directory()
    assert cut(disk, Keep.NONE) == {"b": b"1"}


def test_sectors_are_kept_each_by_itself() -> None:
    disk = FaultyDisk({"a": bytes(4 * SECTOR)})
    disk.open("a").write(0, [b"x" * 4 * SECTOR])
    seen = {
        tuple(data[at] for at in range(0, 4 * SECTOR, SECTOR))
        for data in (cut(disk, Keep.RANDOM, seed)["a"] for seed in range(200))
    }
    assert len(seen) == 16
    late = {cut(disk, Keep.REORDERED, seed)["a"].find(b"x") for seed in range(50)}
    assert late == {-1, 0, SECTOR, 2 * SECTOR, 3 * SECTOR}


def test_a_killed_process_leaves_all_and_a_later_cut_takes_it() -> None:
    disk = FaultyDisk({"a": b"old"})
    disk.open("a").write(0, [b"new"])
    other = disk.killed()
    assert other.files() == {"a": b"new"}
    assert cut(other, Keep.NONE) == {"a": b"old"}
    other.open("a").sync()
    assert (cut(other, Keep.NONE), cut(disk, Keep.NONE)) == ({"a": b"new"}, {"a": b"old"})


def test_a_full_disk_writes_what_fits() -> None:
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
