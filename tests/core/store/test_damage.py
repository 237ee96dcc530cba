"""Torn ends and flipped bits: all are found, the rest is served, nothing is deleted.

With `WARREN_ALL_BITS=1` every bit of 1,000 records is flipped, which takes an hour.
"""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Iterator

import pytest

from tests.core.messages import Sent, whole
from tests.support.faulty_disk import FaultyDisk
from warrenmq.core.clock import ManualClock
from warrenmq.core.errors import ConfigError
from warrenmq.core.message.queue_entry import QueueEntry
from warrenmq.core.store.durable import DurableStore
from warrenmq.core.store.offline import verify
from warrenmq.core.store.record import (
    FILE_HEADER_BYTES,
    KIND_COMPACTED,
    Gap,
    Record,
    RecordKind,
    scan,
)
from warrenmq.core.wire.properties import PERSISTENT

from .fake_queue import FakeQueue
from .history import Found
from .workload import CLOCK_S, Workload, recover

ALL_BITS = bool(os.environ.get("WARREN_ALL_BITS"))
HEADER_BITS = range(0, FILE_HEADER_BYTES * 8, 1 if ALL_BITS else 40)
"""One or more of each field: whichever flips, the check sum is wrong."""
Image = dict[str, bytes]


def flipped(image: Image, name: str, bit: int) -> FaultyDisk:
    data = bytearray(image[name])
    data[bit // 8] ^= 1 << bit % 8
    return FaultyDisk({**image, name: bytes(data)})


def reports(disk: FaultyDisk) -> dict[str, tuple[str, ...]]:
    return {found.name: found.faults for found in verify(disk) if found.faults}


def records(image: Image, name: str) -> list[Record]:
    found = list(scan(int(name.removesuffix(".log")), memoryview(image[name])))
    assert not any(isinstance(record, Gap) for record in found)
    return [record for record in found if isinstance(record, Record)]


def logs(image: Image) -> list[str]:
    return [name for name in image if name.endswith(".log")]


def states(image: Image) -> list[str]:
    return [name for name in image if name.endswith(".state")]


@pytest.fixture(scope="module", params=range(3))
def image(request: pytest.FixtureRequest) -> Image:
    """What a killed process left: sealed segments with and without a checkpoint behind them."""
    for seed in range(100 * request.param, 100 * request.param + 100):
        workload = Workload(FaultyDisk(), seed)
        workload.open()
        workload.run(160, groups=False)
        workload.settle_down()
        workload.run(10, groups=False)
        workload.store.request()
        workload.store.turned()
        image = workload.disk.files()
        if len(states(image)) == 2 and len(logs(image)) > 4 and not reports(FaultyDisk(image)):
            return image
    raise AssertionError("no workload leaves two checkpoints")


@pytest.fixture(scope="module")
def sound(image: Image) -> Found:
    return recover(FaultyDisk(image))[1]


# -- F4: the end is torn


@pytest.fixture(scope="module")
def five_messages() -> Image:
    disk = FaultyDisk()
    store = DurableStore(disk, clock=ManualClock(wall_s=CLOCK_S), segment_bytes=4_000)
    publish_bodies(store, 5)
    return {name: data for name, data in disk.files().items() if name.endswith(".log")}


def publish_bodies(store: DurableStore, count: int) -> None:
    queue = FakeQueue(store.reserve(1))
    store.define(b"q%d" % queue.id, b"queue")
    for number in range(count):
        sent = Sent(b"body %d" % number)
        batch = whole(sent, sequence=store.reserve(1), attributes=PERSISTENT)
        store.append(batch, [(queue, QueueEntry(batch, None))])
        store.request()
        store.turned()


def cuts(image: Image) -> Iterator[tuple[int, int]]:
    """Places in the last three records, and how many messages are whole before each."""
    (name,) = image
    messages = [record for record in records(image, name) if record.kind == RecordKind.MESSAGES]
    assert records(image, name)[-1] is not None and len(messages) == 5
    for at in range(messages[-3].offset, messages[-1].end + 1):
        yield at, sum(record.end <= at for record in messages)


@pytest.mark.parametrize("zeros", [False, True])
def test_a_log_that_is_cut_anywhere_serves_the_exact_prefix(
    five_messages: Image, zeros: bool
) -> None:
    (name,) = five_messages
    data = five_messages[name]
    for at, whole_ones in cuts(five_messages):
        cut = data[:at].ljust(len(data) if zeros else at, b"\0")
        disk = FaultyDisk({name: cut})
        _, found = recover(disk)
        (bodies,) = found.messages.values()
        assert [body for _, body in bodies] == [b"body %d" % n for n in range(whole_ones)]
        assert recover(disk)[1] == found
        assert disk.files().keys() >= {name}


def test_torn_end_is_copied_to_a_file(five_messages: Image) -> None:
    (name,) = five_messages
    last = records(five_messages, name)[-1]
    disk = FaultyDisk({name: five_messages[name][: last.end - 1]})
    recover(disk)
    copies = {key: data for key, data in disk.files().items() if key.endswith(".damaged")}
    assert copies == {
        f"{1:012d}-{last.offset}.damaged": five_messages[name][last.offset : last.end - 1]
    }


# -- F5: bits flip


def test_undamaged_image_reports_nothing(image: Image, sound: Found) -> None:
    assert reports(FaultyDisk(image)) == {}
    assert sum(map(len, sound.messages.values())) > 20


def test_a_flipped_bit_of_a_log_header_is_reported_and_costs_nothing(
    image: Image, sound: Found, caplog: pytest.LogCaptureFixture
) -> None:
    for name in logs(image)[:: 1 if ALL_BITS else 3]:
        for bit in HEADER_BITS:
            assert_served_without(flipped(image, name, bit), name, sound, caplog)


def assert_served_without(
    disk: FaultyDisk, name: str, sound: Found, caplog: pytest.LogCaptureFixture
) -> None:
    """A header is damaged: that is told at each start and no message is missed."""
    header = disk.files()[name][:FILE_HEADER_BYTES]
    assert name in reports(disk)
    for _ in range(3):
        caplog.clear()
        is_there = name in disk.files()
        assert recover(disk)[1] == sound
        assert is_there is (f"{name}: {FILE_HEADER_BYTES} damaged bytes at offset 0" in caplog.text)
    copy = disk.files().get(f"{name.removesuffix('.log')}-0.damaged")
    assert copy == header


def test_an_unused_copy_with_a_damaged_header_is_not_served(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A move that a crash cut short left it: its messages are still where they were."""
    for seed in range(40):
        workload = Workload(FaultyDisk(), seed)
        workload.open()
        workload.run(150)
        image = workload.disk.files()
        newest = max(states(image), default="")
        for name in logs(image):
            if image[name].startswith(KIND_COMPACTED) and name.removesuffix("log") > newest[:-5]:
                _, sound = recover(FaultyDisk(image))
                for bit in HEADER_BITS:
                    assert recover(flipped(image, name, bit))[1] == sound
                return
    raise AssertionError("no workload leaves a move half done")


def some_bits(start: int, end: int, count: int, chance: random.Random) -> list[int]:
    bits = range(8 * start, 8 * end)
    return list(bits) if ALL_BITS else chance.sample(bits, min(count, len(bits)))


def test_a_damaged_checkpoint_is_passed_over(
    image: Image, sound: Found, caplog: pytest.LogCaptureFixture
) -> None:
    chance = random.Random(1)
    for name in states(image):
        size = len(image[name])
        for bit in [*HEADER_BITS, *some_bits(FILE_HEADER_BYTES, size, 20, chance)]:
            disk = flipped(image, name, bit)
            assert name in reports(disk)
            caplog.clear()
            _, found = recover(disk)
            assert found == sound
            if name == states(image)[-1]:
                assert any(name in record.message for record in caplog.records)


def test_without_a_sound_checkpoint_the_whole_log_is_read(sealed: Image) -> None:
    _, found = recover(FaultyDisk(sealed))
    (name,) = states(sealed)
    assert recover(flipped(sealed, name, 1000))[1] == found
    assert recover(FaultyDisk({**sealed, name: b""}))[1] == found


def test_without_a_sound_checkpoint_and_the_first_segments_nothing_is_touched(
    sealed: Image,
) -> None:
    (name,) = states(sealed)
    first = logs(sealed)[0]
    for image in ({**sealed, name: b""}, {key: sealed[key] for key in logs(sealed)}):
        del image[first]
        disk = FaultyDisk(image)
        with pytest.raises(ConfigError, match=first):
            recover(disk)
        assert disk.changes == 0


def test_a_damaged_record_of_a_sealed_segment_that_is_replayed_costs_only_itself(
    sealed: Image,
) -> None:
    image = {name: sealed[name] for name in logs(sealed)}
    _, sound = recover(FaultyDisk(image))
    for name in logs(image)[:3]:
        for record in records(image, name):
            if record.kind == RecordKind.MESSAGES:
                _, found = recover(disk := flipped(image, name, record.offset * 8 + 300))
                assert {number for _, number in missing(sound, found)} == {record.sequence}
                assert recover(disk)[1] == found


@pytest.fixture(scope="module")
def sealed() -> Image:
    """Several segments that a killed process filled, and its first checkpoint."""
    disk = FaultyDisk()
    store = DurableStore(disk, clock=ManualClock(wall_s=CLOCK_S), segment_bytes=400)
    publish_bodies(store, 60)
    assert len(logs(disk.files())) > 3
    files = disk.files()
    return {name: files[name] for name in [*logs(files), states(files)[0]]}


def test_a_damaged_record_costs_only_its_own_content(
    image: Image, sound: Found, caplog: pytest.LogCaptureFixture
) -> None:
    chance = random.Random(2)
    kept = kept_anyway(image)
    seen = set()
    for name in logs(image):
        for record in records(image, name):
            for bit in some_bits(record.offset, record.end, 1, chance):
                disk = check_flip(image, sound, (name, record, bit), caplog)
                assert_kept(disk, kept, (name, record, bit))
            seen.add(record.kind)
    assert seen >= {
        RecordKind.MESSAGES,
        RecordKind.SETTLED,
        RecordKind.DEFINITION,
        RecordKind.INDEX,
        RecordKind.SEALED,
    }


def check_flip(
    image: Image,
    sound: Found,
    place: tuple[str, Record, int],
    caplog: pytest.LogCaptureFixture,
) -> FaultyDisk:
    name, record, bit = place
    disk = flipped(image, name, bit)
    assert name in reports(disk), place
    caplog.clear()
    _, found = recover(disk)
    lost = missing(sound, found)
    if record.kind in (RecordKind.DEFINITION, RecordKind.DROPPED):
        assert not lost - messages_of(sound, sound.definitions.keys() - found.definitions.keys())
    elif record.kind == RecordKind.MESSAGES:
        assert all(record.sequence <= number < record.sequence + 20 for _, number in lost), place
        assert not missing(found, sound), place
    else:
        assert not lost, place
    if lost:
        assert any(told.levelno >= logging.WARNING for told in caplog.records), place
    assert recover(disk)[1] == found, place
    return disk


def kept_anyway(image: Image) -> set[str]:
    """Segments of which something is left."""
    disk = FaultyDisk(image)
    recover(disk)
    recover(disk)
    return set(logs(image)) & disk.files().keys()


def assert_kept(disk: FaultyDisk, kept: set[str], place: tuple[str, Record, int]) -> None:
    """All segments are there, or what was cut off the damaged one is, and nothing else was in
    it."""
    name, record, _ = place
    copy = f"{name.removesuffix('.log')}-{record.offset}.damaged"
    gone = kept - disk.files().keys()
    assert not gone or (gone == {name} and copy in disk.files()), place


def missing(there: Found, found: Found) -> set[tuple[int, int]]:
    return pairs(there) - pairs(found)


def pairs(found: Found) -> set[tuple[int, int]]:
    return {(queue, number) for queue, held in found.messages.items() for number, _ in held}


def messages_of(found: Found, keys: set[bytes]) -> set[tuple[int, int]]:
    return {held for held in pairs(found) if b"q%d" % held[0] in keys}
