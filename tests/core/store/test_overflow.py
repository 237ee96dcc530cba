"""Files without a name, which end with what is wanted of them."""

from __future__ import annotations

import errno
import gc
import os
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.core.life import TRANSIENT, Life, numbered
from tests.support.faulty_disk import FaultyDisk
from warrenmq.core.message.batch import Batch, MessageRange
from warrenmq.core.store import overflow
from warrenmq.core.store.disk import RealDisk, RealFile
from warrenmq.core.store.durable import DurableStore
from warrenmq.core.store.overflow import Overflow
from warrenmq.core.store.record import Buffer


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_what_was_written_can_be_read(tmp_path: Path) -> None:
    held = Overflow(RealDisk(tmp_path))
    first, at, size = held.append([b"one", b"two"])
    second, then, length = held.append([b"three"])
    assert first is second
    assert (first.read(at, size), second.read(then, length)) == (b"onetwo", b"three")
    assert os.listdir(tmp_path) == []


def test_a_new_file_begins_when_one_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overflow, "FILE_BYTES", 10)
    held = Overflow(RealDisk(tmp_path))
    places = [held.append([b"%02d" % number * 6]) for number in range(5)]
    assert len({id(file) for file, _, _ in places}) == 5
    assert [file.read(at, size)[:2] for file, at, size in places] == [
        b"00", b"01", b"02", b"03", b"04",
    ]  # fmt: skip


def test_a_file_is_closed_with_its_last_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overflow, "FILE_BYTES", 10)
    held = Overflow(RealDisk(tmp_path))
    gc.collect()  # What other tests left open.
    before = open_files()
    places = [held.append([bytes(20)]) for _ in range(4)]
    assert open_files() == before + 4
    del places[1:]
    gc.collect()
    assert open_files() == before + 2, "one that is wanted, and the one that is written"
    places[0][0].read(0, 20)


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_messages_stay_in_memory_when_there_is_no_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = Life(tmp_path / "log")
    life.client.declare("t")
    for body in numbered(10):
        life.publish(body, "t", TRANSIENT)
    with monkeypatch.context() as disk:
        disk.setattr(RealFile, "write", full)
        life.page_out("t", transient=True)
        life.turns()
    ranges = [held for held in life.classic("t").backlog if isinstance(held, MessageRange)]
    assert all(messages.entry.batch.resident for messages in ranges)
    assert not life.store._failed
    life.page_out("t", transient=True)
    life.turns()
    assert not any(messages.entry.batch.resident for messages in ranges)
    assert life.bodies("t") == numbered(10)
    life.abandon()


def test_two_jobs_do_not_write_over_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = Life(tmp_path / "log")
    life.client.declare("t")
    for body in numbered(2):
        life.publish(body, "t", TRANSIENT)
    eviction = life.store._paging.batches
    batches = [
        held.entry.batch for held in life.classic("t").backlog if isinstance(held, MessageRange)
    ]
    places: list[tuple[Batch, Any]] = []
    write = RealFile.write
    second = Thread(target=lambda: places.extend(eviction._write_overflow()))

    def interrupted(file: RealFile, at: int, pieces: list[Buffer]) -> None:
        if second.ident is None:
            eviction._overflowing.append(batches[1])
            second.start()
            second.join(0.2)  # The second job has to wait; if it does not, it is done by then.
        write(file, at, pieces)

    monkeypatch.setattr(RealFile, "write", interrupted)
    eviction._overflowing.append(batches[0])
    places += eviction._write_overflow()
    second.join()
    assert len({at for _, (_, at, _) in places}) == 2
    life.abandon()


def test_a_failed_write_takes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Overflow(RealDisk(tmp_path))
    held.append([b"one"])
    with monkeypatch.context() as disk:
        disk.setattr(RealFile, "write", full)
        with pytest.raises(OSError, match="No space"):
            held.append([b"lost"])
    file, at, size = held.append([b"two"])
    assert (at, file.read(at, size)) == (3, b"two")


def test_nothing_of_it_is_there_after_a_restart(tmp_path: Path) -> None:
    life = Life(tmp_path / "log")
    life.declare("q")
    for body in numbered(10):
        life.publish(body, "q", TRANSIENT)
    life.page_out(transient=True)
    life.turns()
    life.restart()
    assert life.queue("q").ready_count == 0
    assert not [name for name in life.files("") if "overflow" in name]
    life.abandon()


def test_a_file_that_a_crash_left_is_removed_at_the_next_start() -> None:
    disk = FaultyDisk()
    disk.before = lambda kind, name: _killed() if kind == "remove" else None
    with pytest.raises(InterruptedError):
        Overflow(disk).append([b"bytes"])
    left = disk.killed()
    assert left.names()
    DurableStore(left)
    assert not [name for name in left.names() if name in disk.names()]


def _killed() -> None:
    raise InterruptedError
