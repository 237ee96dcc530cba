"""Overflow files for transient messages."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from threading import Event

import pytest

from tests.core.life import PATIENCE_S, TRANSIENT, Life, numbered
from tests.support.faulty_disk import FaultyDisk
from warrenmq.core.clock import ManualClock
from warrenmq.core.message.queue_entry import MessageRange
from warrenmq.core.store import overflow
from warrenmq.core.store.disk import RealDisk, RealFile
from warrenmq.core.store.durable import DurableStore
from warrenmq.core.store.location import OverflowLocation
from warrenmq.core.store.overflow import Overflow
from warrenmq.core.store.record import Buffer


def read(place: OverflowLocation) -> bytes:
    return place.file.read(place.offset, place.size)


def test_written_buffers_can_be_read(tmp_path: Path) -> None:
    held = Overflow(RealDisk(tmp_path))
    first, second = held.append([b"one", b"two"]), held.append([b"three"])
    assert first.file is second.file
    assert (read(first), read(second)) == (b"onetwo", b"three")
    assert os.listdir(tmp_path) == []


def test_a_new_file_begins_when_one_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overflow, "FILE_BYTES", 10)
    held = Overflow(RealDisk(tmp_path))
    places = [held.append([b"%02d" % number * 6]) for number in range(5)]
    assert len({id(place.file) for place in places}) == 5
    assert [read(place)[:2] for place in places] == [b"00", b"01", b"02", b"03", b"04"]


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_full_disk_keeps_transient_messages_in_memory(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    life.client.declare("t")
    for body in numbered(10):
        life.publish(body, "t", TRANSIENT)
    with monkeypatch.context() as disk:
        disk.setattr(RealFile, "write", full)
        life.page_out("t", transient=True)
        life.turns()
    ranges = [held for held in life.classic("t").backlog if isinstance(held, MessageRange)]
    assert all(messages.entry.batch.resident for messages in ranges)
    assert not life.store.has_failed
    life.page_out("t", transient=True)
    life.turns()
    assert not any(messages.entry.batch.resident for messages in ranges)
    assert life.bodies("t") == numbered(10)


def test_two_jobs_do_not_write_over_each_other(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    life.client.declare("t")
    for body in numbered(2):
        life.publish(body, "t", TRANSIENT)
    first, second = (
        held.entry.batch for held in life.classic("t").backlog if isinstance(held, MessageRange)
    )
    write, begun = RealFile.write, Event()

    def interrupted(file: RealFile, at: int, pieces: list[Buffer]) -> None:
        if not begun.is_set():
            begun.set()
            Event().wait(0.2)  # The second job has to wait; if it does not, it is done by then.
        write(file, at, pieces)

    monkeypatch.setattr(RealFile, "write", interrupted)
    life.start()
    life.store.batches.evict(first)
    assert begun.wait(PATIENCE_S)
    life.store.batches.evict(second)
    life.wait(lambda: not (first.resident or second.resident))
    places = [batch.location for batch in (first, second)]
    assert len({place.offset for place in places if isinstance(place, OverflowLocation)}) == 2


def test_a_failed_write_takes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Overflow(RealDisk(tmp_path))
    held.append([b"one"])
    with monkeypatch.context() as disk:
        disk.setattr(RealFile, "write", full)
        with pytest.raises(OSError, match="No space"):
            held.append([b"lost"])
    place = held.append([b"two"])
    assert (place.offset, read(place)) == (3, b"two")


def test_a_file_that_a_crash_left_is_removed_at_the_next_start() -> None:
    disk = FaultyDisk()
    disk.before = lambda kind, name: _killed() if kind == "remove" else None
    with pytest.raises(InterruptedError):
        Overflow(disk).append([b"bytes"])
    left = disk.killed()
    assert left.names()
    DurableStore(left, clock=ManualClock())
    assert not [name for name in left.names() if name in disk.names()]


def _killed() -> None:
    raise InterruptedError
