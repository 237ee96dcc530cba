"""Reading records by location, and indexes by queue."""

from __future__ import annotations

import pytest

from tests.core.messages import Sent, whole
from tests.support.faulty_disk import FaultyDisk
from warrenmq.core.clock import ManualClock
from warrenmq.core.message.queue_entry import QueueEntry
from warrenmq.core.store import reader
from warrenmq.core.store.codec import decode_messages
from warrenmq.core.store.durable import DurableStore
from warrenmq.core.store.reader import FILES_OPEN, DamagedRecord, RecordReader
from warrenmq.core.store.record import Record, RecordKind, counting, scan, seal
from warrenmq.core.store.record_index import RecordIndex
from warrenmq.core.wire.properties import PERSISTENT

from .fake_queue import FakeQueue
from .workload import SEGMENT_BYTES, Workload


@pytest.mark.parametrize("seed", range(6))
def test_an_index_equals_a_fresh_one(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    """Also that of a segment which a crash left with half a group at its end."""
    workload = Workload(FaultyDisk(), seed)
    workload.open()
    workload.run(150)
    disk = workload.disk.killed()
    store = DurableStore(disk, clock=ManualClock(), segment_bytes=SEGMENT_BYTES)
    held = [
        (segment.number, queue_id)
        for segment in store.log.segments.values()
        for queue_id in segment.parts
    ]
    cached = [RecordReader(disk).index(*key).numbers for key in held]
    assert "is rebuilt" not in caplog.text
    without = FaultyDisk({name: without_index(name, data) for name, data in disk.files().items()})
    assert [RecordReader(without).index(*key).numbers for key in held] == cached
    assert len(held) > 3
    assert "is rebuilt" in caplog.text


def without_index(name: str, data: bytes) -> bytes:
    if not name.endswith(".log"):
        return data
    records = counting(scan(int(name.removesuffix(".log")), memoryview(data)))
    ends = [record.offset for record in records if record.kind == RecordKind.INDEX]
    return data[: ends[-1]] if ends else data


def one_record() -> tuple[FaultyDisk, Record]:
    workload = Workload(FaultyDisk(), 2)
    workload.open()
    workload.run(30)
    disk = workload.disk
    for record in counting(scan(1, memoryview(disk.files()["000000000001.log"]))):
        if record.kind == RecordKind.MESSAGES:
            return disk, record
    raise AssertionError("there are messages in it")


def test_a_record_is_read_by_its_place() -> None:
    disk, record = one_record()
    size = record.end - record.offset
    found = RecordReader(disk).record(1, record.offset, size)
    expected = decode_messages(record.body, record.sequence, 0).batch
    assert (found.sequence, found.batch(0).data) == (record.sequence, expected.data)
    for offset, length in ((record.offset + 1, size), (record.offset, size - 1)):
        with pytest.raises(DamagedRecord, match=r"000000000001\.log"):
            RecordReader(disk).record(1, offset, length)


def test_record_read_twice_shares_its_bytes() -> None:
    disk, record = one_record()
    one = RecordReader(disk)
    size = record.end - record.offset
    read = [one.record(1, record.offset, size).batch(0) for _ in range(2)]
    assert read[0].data is read[1].data


def test_record_of_another_kind_counts_as_damaged() -> None:
    raw = b"".join(seal(1, 0, RecordKind.SETTLED, 0, 0, [b"body"]))
    with pytest.raises(DamagedRecord):
        RecordReader(FaultyDisk({"000000000001.log": raw})).record(1, 0, len(raw))


def test_a_queue_that_is_not_in_a_segment_has_an_empty_index() -> None:
    disk, _ = one_record()
    assert RecordReader(disk).index(1, 12345).numbers == RecordIndex().numbers


def test_number_of_open_files_is_bounded() -> None:
    names = [f"{number:012d}.log" for number in range(1, FILES_OPEN + 5)]
    disk = FaultyDisk({name: bytes(100) for name in names})
    opened: list[str] = []
    disk.before = lambda kind, name: opened.append(name) if kind == "open" else None
    reader = RecordReader(disk)
    for number in range(1, FILES_OPEN + 2):
        reader.read(number, 0, 10)
        reader.read(number, 10, 10)
    assert opened == names[: FILES_OPEN + 1]
    reader.read(2, 0, 10)
    assert len(opened) == FILES_OPEN + 1
    reader.forget(2)
    reader.read(2, 0, 10)
    reader.read(1, 0, 10)
    assert opened[FILES_OPEN + 1 :] == [names[1], names[0]]
    reader.close()


def many_queues(segments: int = 1) -> tuple[FaultyDisk, list[FakeQueue]]:
    """A log in which each of these queues has a message in each of so many segments."""
    disk = FaultyDisk()
    store = DurableStore(disk, clock=ManualClock(), segment_bytes=200_000)
    queues = [FakeQueue(store.reserve(1)) for _ in range(300)]
    for _ in range(segments):
        for queue in queues:
            batch = whole(Sent(b"body"), sequence=store.reserve(1), attributes=PERSISTENT)
            store.append(batch, [(queue, QueueEntry(batch, None))])
        store.log.roll()
    store.stop()
    return disk, queues


def reads_of(disk: FaultyDisk) -> list[str]:
    reads: list[str] = []
    disk.before = lambda kind, name: reads.append(name) if kind == "read" else None
    return reads


def test_the_indexes_of_a_segment_are_read_once_for_all_its_queues() -> None:
    disk, queues = many_queues()
    reads, found = reads_of(disk), RecordReader(disk)
    assert all(len(found.index(1, queue.id)) == 1 for queue in queues)
    assert len(reads) == 2


def test_missing_indexes_are_rebuilt_once_for_all_queues(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk, queues = many_queues()
    files = {name: without_index(name, data) for name, data in disk.files().items()}
    found = RecordReader(FaultyDisk(files))
    assert all(len(found.index(1, queue.id)) == 1 for queue in queues)
    assert len(found.index(1, 12345)) == 0
    assert caplog.text.count("is rebuilt") == 1


def test_a_queue_that_an_index_lacks_has_the_records_read_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk, queues = many_queues()
    found = RecordReader(disk)
    assert not any(len(found.index(1, missing)) for missing in range(10_000, 10_050))
    assert all(len(found.index(1, queue.id)) == 1 for queue in queues)
    assert caplog.text.count("is rebuilt") == 1


@pytest.mark.parametrize(("kept_bytes", "expected"), [(10**9, 4), (0, 8)])
def test_cached_indexes_are_bounded_in_bytes(
    monkeypatch: pytest.MonkeyPatch, kept_bytes: int, expected: int
) -> None:
    monkeypatch.setattr(reader, "TABLES_BYTES", kept_bytes)
    disk, queues = many_queues(segments=2)
    reads, found = reads_of(disk), RecordReader(disk)
    for queue in queues[:2]:
        for segment in (1, 2):
            assert len(found.index(segment, queue.id)) == 1
    assert len(reads) == expected
