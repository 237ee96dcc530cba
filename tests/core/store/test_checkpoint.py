"""Checkpoints: contents, the last two of them, and interrupted writes."""

from __future__ import annotations

import errno
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.messages import batch
from tests.support.faulty_disk import FaultyDisk, Keep, fault
from warrenmq.core.clock import ManualClock
from warrenmq.core.message.queue_entry import MessageRange, QueueEntry
from warrenmq.core.store import checkpoint
from warrenmq.core.store.checkpoint import CheckpointState, checkpoint_name
from warrenmq.core.store.durable import DurableStore
from warrenmq.core.store.record import FILE_HEADER_BYTES, FORMAT_VERSION
from warrenmq.core.store.segment import Segment
from warrenmq.core.wire.properties import PERSISTENT

from .fake_queue import FakeQueue
from .workload import SEGMENT_BYTES, Workload, recover

numbers = st.integers(1, 2**63)
STORE_ID = b"i" * 16


@st.composite
def segments(draw: st.DrawFn) -> Segment:
    """With parts of which some messages are settled."""
    segment = Segment(draw(st.integers(1, 9)))
    segment.end, segment.unclean = draw(st.integers(48, 2**40)), draw(st.booleans())
    for queue_id in draw(st.sets(numbers, min_size=1, max_size=3)):
        part = segment.part(queue_id)
        count = draw(st.integers(2, 5))
        for record in range(count):
            part.add(record * 10, record * 10 + 9, 10, 48 + record, 30, draw(st.booleans()))
        for ordinal in draw(st.sets(st.integers(0, count - 1), max_size=count - 1)):
            part.mark_dead(ordinal)
            part.count_settled(10)
        alive = next(at for at in range(count) if not part.is_dead(at))
        part.partial[alive] = bytes((1, alive))
        part.count_settled(1)
    return segment


def written(state: CheckpointState, number: int = 10) -> tuple[FaultyDisk, set[int]]:
    disk = FaultyDisk()
    listed: set[int] = set()
    pieces = checkpoint.encode(number, state, listed, first_own=number, clean=state.clean)
    checkpoint.write(disk, STORE_ID, number, list(pieces))
    return disk, listed


def described(segment: Segment) -> object:
    parts = {
        key: (part.records, part.unsettled, part.front, part.first, part.last, part.special,
              part.dead, part.partial)
        for key, part in segment.parts.items()
    }  # fmt: skip
    return segment.number, segment.end, segment.unsettled, segment.total, segment.unclean, parts


@given(
    st.lists(segments(), unique_by=lambda segment: segment.number, max_size=3),
    st.dictionaries(st.binary(max_size=300), st.binary(max_size=300), max_size=4),
    st.dictionaries(numbers, numbers, max_size=3),
    st.dictionaries(st.tuples(numbers, st.integers(0, 255)), numbers, max_size=3),
    st.booleans(),
)
def test_checkpoint_round_trip(
    held: list[Segment],
    definitions: dict[bytes, bytes],
    marks: dict[int, int],
    priority_marks: dict[tuple[int, int], int],
    clean: bool,
) -> None:
    by_number = {held.number: held for held in held}
    state = CheckpointState(
        STORE_ID, 10, 77, clean, 10, definitions, marks, by_number, priority_marks
    )
    disk, listed = written(state)
    read = checkpoint.read_newest(disk)
    assert read is not None and read.store_id == STORE_ID
    assert (read.segment, read.sequence, read.clean) == (10, 77, clean)
    assert (read.definitions, read.marks) == (definitions, marks)
    assert read.priority_marks == priority_marks
    assert list(read.definitions) == list(definitions)
    assert list(map(described, read.segments.values())) == list(map(described, held))
    assert listed == set(read.segments)


@pytest.mark.parametrize("clean", [True, False])
def test_segments_of_a_process_that_did_not_stop_in_order_are_unclean(clean: bool) -> None:
    held = {number: Segment(number) for number in (4, 5)}
    for segment in held.values():
        segment.part(7).add(1, 1, 1, 48, 30, special=0)
    pieces = checkpoint.encode(9, CheckpointState(segments=held), set(), first_own=5, clean=clean)
    disk = FaultyDisk()
    checkpoint.write(disk, STORE_ID, 9, list(pieces))
    found = checkpoint.read_newest(disk)
    assert found is not None
    unclean = {number for number, segment in found.segments.items() if segment.unclean}
    assert unclean == (set() if clean else {5})


def test_many_definitions_and_parts_are_written_in_slices() -> None:
    segment = Segment(1)
    for queue_id in range(1, 1_201):
        segment.part(queue_id).add(1, 1, 1, 48, 30, special=0)
    definitions = {b"%d" % number: b"" for number in range(4_500)}
    state = CheckpointState(definitions=definitions, segments={1: segment})
    pieces = list(checkpoint.encode(2, state, set(), first_own=1, clean=True))
    assert len(pieces) > 6
    disk = FaultyDisk()
    checkpoint.write(disk, STORE_ID, 2, pieces)
    found = checkpoint.read_newest(disk)
    assert found is not None and found.definitions == definitions
    assert len(found.segments[1].parts) == 1_200


def test_settled_and_later_segments_are_not_listed() -> None:
    done, kept, later = Segment(1), Segment(2), Segment(10)
    for segment in (kept, later):
        segment.part(7).add(1, 1, 1, 48, 30, special=0)
    _, listed = written(CheckpointState(segment=10, segments={1: done, 2: kept, 10: later}))
    assert listed == {2}


@pytest.mark.parametrize("kind", ["create", "write", "sync"])
def test_a_checkpoint_that_does_not_fit_leaves_nothing(kind: str) -> None:
    disk, _ = written(CheckpointState())
    before = disk.files()

    def full(found: str, name: str) -> None:
        if found == kind:
            raise fault(errno.ENOSPC)

    disk.before = full
    with pytest.raises(OSError, match="space"):
        checkpoint.write(disk, STORE_ID, 11, [b"body"])
    assert disk.files() == before


def test_an_unfinished_checkpoint_is_removed() -> None:
    disk, _ = written(CheckpointState())
    file = disk.create(checkpoint_name(11) + ".new")
    file.write(0, [b"half"])
    checkpoint.remove_unfinished(disk)
    assert disk.names() == [checkpoint_name(10)]


@pytest.mark.parametrize("size", [0, 10, FILE_HEADER_BYTES, FILE_HEADER_BYTES + 11])
def test_a_short_checkpoint_is_damaged(size: int, caplog: pytest.LogCaptureFixture) -> None:
    disk, _ = written(CheckpointState())
    data = disk.files()[checkpoint_name(10)]
    cut = FaultyDisk({checkpoint_name(11): data[:size], **disk.files()})
    found = checkpoint.read_newest(cut)
    assert found is not None and found.segment == 10
    assert checkpoint_name(11) in caplog.text


@pytest.mark.parametrize("seed", range(4))
def test_either_of_the_last_two_checkpoints_is_enough(seed: int) -> None:
    workload = Workload(FaultyDisk(), seed)
    seen: list[list[str]] = []

    def look(kind: str, name: str) -> None:
        files = workload.disk.killed().files()
        states = sorted(name for name in files if name.endswith(".state"))
        if kind in ("create", "remove") and len(states) > 1:
            _, found = recover(FaultyDisk({**files, states[-1]: b"damaged"}))
            seen.append(workload.history.faults(found))

    workload.disk.before = look
    workload.open()
    workload.run(120)
    workload.stop()
    assert len(seen) > 5
    assert seen == [[]] * len(seen)


def test_checkpoint_waits_until_its_contents_are_synced() -> None:
    """A dead letter's settlement must not be kept without its copy."""
    disk = FaultyDisk()
    store = DurableStore(disk, clock=ManualClock(), segment_bytes=SEGMENT_BYTES)
    source, target = FakeQueue(store.reserve(1)), FakeQueue(store.reserve(1))
    for queue in (source, target):
        store.define(b"q%d" % queue.id, b"queue")
    original = publish(store, source)
    store.log.roll()
    store.flush()

    def no_space_for_the_log(kind: str, name: str) -> None:
        if kind == "write" and name.endswith(".log"):
            raise fault(errno.ENOSPC)

    disk.before = no_space_for_the_log
    with store.together():
        store.settle(source, MessageRange(original, 0, 1))
        publish(store, target)
    for _ in range(6):
        store.turned()
    _, found = recover(disk.power_cut(Keep.ALL, random.Random(1)))
    assert [len(found.messages[queue.id]) for queue in (source, target)] == [1, 0]
    disk.before = lambda kind, name: None
    store.flush()
    _, found = recover(disk.power_cut(Keep.NONE, random.Random(1)))
    assert [len(found.messages[queue.id]) for queue in (source, target)] == [0, 1]


def publish(store: DurableStore, queue: FakeQueue) -> QueueEntry:
    entry = QueueEntry(batch(1, store.reserve(1), PERSISTENT, 8), None)
    store.append(entry.batch, [(queue, entry)])
    return entry


def test_the_format_version_is_the_one_that_is_documented() -> None:
    assert FORMAT_VERSION == 1
