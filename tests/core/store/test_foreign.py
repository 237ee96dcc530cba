"""Files of another store or a newer Warren are refused and left unchanged."""

from __future__ import annotations

import struct
import zlib

import pytest

from tests.support.faulty_disk import FaultyDisk
from warrenmq.core.clock import ManualClock
from warrenmq.core.errors import ConfigError
from warrenmq.core.store.durable import DurableStore
from warrenmq.core.store.offline import OfflineLog
from warrenmq.core.store.record import FILE_HEADER_BYTES, FORMAT_VERSION

from .workload import SEGMENT_BYTES, Workload

Image = dict[str, bytes]


@pytest.fixture(scope="module")
def image() -> Image:
    return workload_image(1)


def workload_image(seed: int) -> Image:
    """Ends with checkpoints and with segments behind them."""
    workload = Workload(FaultyDisk(), seed)
    workload.open()
    workload.run(80)
    workload.settle_down()
    workload.run(5)
    return workload.disk.files()


def first_and_last(image: Image, suffix: str) -> list[str]:
    names = sorted(name for name in image if name.endswith(suffix))
    return [names[0], names[-1]]


def with_header(data: bytes, at: int, raw: bytes) -> bytes:
    """The file with a changed header whose checksum is right."""
    header = bytearray(data[: FILE_HEADER_BYTES - 4])
    header[at : at + len(raw)] = raw
    return bytes(header) + struct.pack("<I", zlib.crc32(header)) + data[FILE_HEADER_BYTES:]


def assert_refused(image: Image, *said: str) -> None:
    for read in (
        lambda disk: DurableStore(disk, clock=ManualClock(), segment_bytes=SEGMENT_BYTES),
        OfflineLog,
    ):
        disk = FaultyDisk(image)
        with pytest.raises(ConfigError) as told:
            read(disk)
        assert "\n" not in str(told.value)
        assert all(word in str(told.value) for word in said), str(told.value)
        assert disk.changes == 0 and disk.files() == dict(sorted(image.items()))


@pytest.mark.parametrize("suffix", [".log", ".state"])
def test_a_newer_format_is_refused_with_both_versions(image: Image, suffix: str) -> None:
    newer = struct.pack("<I", FORMAT_VERSION + 1)
    name = first_and_last(image, suffix)[1]
    assert_refused(
        {**image, name: with_header(image[name], 8, newer)},
        name, str(FORMAT_VERSION), str(FORMAT_VERSION + 1),
    )  # fmt: skip


@pytest.mark.parametrize(("suffix", "place"), [(".log", 0), (".log", 1), (".state", 1)])
def test_a_file_of_another_store_is_refused(image: Image, suffix: str, place: int) -> None:
    name = first_and_last(image, suffix)[place]
    other = with_header(image[name], 16, b"another store 16")
    assert_refused({**image, name: other}, "another store")


@pytest.mark.parametrize("name", ["000000009999.log", "notes.log"])
def test_a_segment_under_another_name_is_refused(image: Image, name: str) -> None:
    last = first_and_last(image, ".log")[1]
    assert_refused({**image, name: image[last]}, name)


def test_a_missing_segment_is_refused(image: Image) -> None:
    name = listed(image)
    assert_refused({key: data for key, data in image.items() if key != name}, name, "missing")


def listed(image: Image) -> str:
    """A segment of which something is left."""
    store = DurableStore(FaultyDisk(image), clock=ManualClock(), segment_bytes=SEGMENT_BYTES)
    number = min(number for number, segment in store.log.segments.items() if segment.unsettled)
    return f"{number:012d}.log"


def test_other_files_are_left_alone(image: Image) -> None:
    disk = FaultyDisk({**image, "lost+found": b"", "notes.txt": b"mine"})
    DurableStore(disk, clock=ManualClock(), segment_bytes=SEGMENT_BYTES)
    assert disk.files()["notes.txt"] == b"mine"
