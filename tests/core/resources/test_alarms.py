"""Memory and disk alarms by given measurements."""

from __future__ import annotations

import pytest

from warrenmq.core.message.batch import MemoryUsage
from warrenmq.core.resources.alarms import Alarms, Bounds, Reading
from warrenmq.core.store.record_cache import RecordCache


class Publisher:
    """Counts how often it may go on."""

    def __init__(self) -> None:
        self.unblocked = 0

    def unblock(self) -> None:
        self.unblocked += 1


@pytest.fixture
def ledger() -> MemoryUsage:
    return MemoryUsage()


def messages(alarms: Alarms, ledger: MemoryUsage, size_bytes: int) -> bool:
    """Sets the bytes of messages; returns whether memory is short."""
    ledger.resident_bytes = size_bytes
    alarms.update()
    return alarms.memory


NOTHING = Bounds()
MEMORY, DISK = Bounds(memory=600), Bounds(disk_free=1000)
PROCESS = Bounds(memory=600, rss=850)
EVERYTHING = Bounds(memory=600, rss=850, disk_free=1000)
HUGE_PROCESS, UNKNOWN = Reading(rss_bytes=2000), Reading(rss_bytes=None, disk_free_bytes=None)
HUGE = Reading(other_bytes=2**60, rss_bytes=2**60, disk_free_bytes=0)


@pytest.mark.parametrize(
    ("bounds", "steps"),
    [
        (NOTHING, [(2**60, HUGE, "")]),
        (MEMORY, [(600, Reading(), ""), (601, Reading(), "memory"), (501, Reading(), "memory"),
                  (500, Reading(), ""), (600, Reading(), "")]),
        (MEMORY, [(200, Reading(other_bytes=400), ""), (201, Reading(other_bytes=400), "memory"),
                  (201, Reading(), "")]),
        (PROCESS, [(151, Reading(rss_bytes=850), ""), (151, Reading(rss_bytes=851), "memory"),
                   (151, Reading(rss_bytes=720), "memory"), (151, Reading(rss_bytes=708), "")]),
        (PROCESS, [(150, HUGE_PROCESS, ""), (151, HUGE_PROCESS, "memory"),
                   (126, HUGE_PROCESS, "memory"), (125, HUGE_PROCESS, "")]),
        (EVERYTHING, [(600, UNKNOWN, ""), (600, Reading(disk_free_bytes=999), "disk"),
                      (600, UNKNOWN, "disk")]),
        (DISK, [(0, Reading(disk_free_bytes=1000), ""), (0, Reading(disk_free_bytes=999), "disk"),
                (0, Reading(disk_free_bytes=1199), "disk"),
                (0, Reading(disk_free_bytes=1200), "")]),
        (NOTHING, [(0, Reading(disk_free_bytes=10**12, store_is_full=True), "disk"),
                   (0, Reading(disk_free_bytes=10**12), "")]),
    ],
    ids=[
        "no bounds", "memory until five sixths", "memory is more than messages",
        "the process is the second guard", "a large process with few messages",
        "what is not known changes nothing", "disk until six fifths", "a store without space",
    ],
)  # fmt: skip
def test_alarms_by_readings(
    ledger: MemoryUsage, bounds: Bounds, steps: list[tuple[int, Reading, str]]
) -> None:
    """Each step is the bytes of messages, what was measured, and what is short then."""
    alarms = Alarms(ledger, bounds, cache=RecordCache())
    for size_bytes, reading, what in steps:
        ledger.resident_bytes = size_bytes
        alarms.measure(reading)
        assert alarms.reason == (f"low on {what}" if what else "")
        assert (alarms.any, alarms.memory) == (bool(what), what == "memory")


def test_ceiling_is_the_memory_left_for_messages(ledger: MemoryUsage) -> None:
    alarms = Alarms(ledger, MEMORY, cache=RecordCache())
    alarms.measure(Reading(other_bytes=400))
    assert alarms.ceiling_bytes == 200
    assert not messages(alarms, ledger, 200)
    assert messages(alarms, ledger, 201)


def test_blocked_connections_resume_after_the_last_alarm(ledger: MemoryUsage) -> None:
    alarms = Alarms(ledger, Bounds(memory=600, disk_free=1000), cache=RecordCache())
    publisher, gone = Publisher(), Publisher()
    ledger.resident_bytes = 601
    alarms.measure(Reading(disk_free_bytes=0))
    assert alarms.reason == "low on memory & disk"
    alarms.block(publisher)
    alarms.block(gone)
    alarms.forget(gone)
    messages(alarms, ledger, 0)
    assert alarms.any
    assert publisher.unblocked == 0
    alarms.measure(Reading(disk_free_bytes=2000))
    assert alarms.reason == ""
    assert (publisher.unblocked, gone.unblocked) == (1, 0)
    messages(alarms, ledger, 601)
    messages(alarms, ledger, 0)
    assert publisher.unblocked == 1


def test_other_bounds_count_at_once(ledger: MemoryUsage) -> None:
    alarms = Alarms(ledger, cache=RecordCache())
    ledger.resident_bytes = 601
    alarms.bounds = MEMORY
    assert alarms.memory
    alarms.bounds = NOTHING
    assert alarms.reason == ""


def test_each_change_is_one_line_of_the_log(
    ledger: MemoryUsage, caplog: pytest.LogCaptureFixture
) -> None:
    bounds = Bounds(memory=6 * 2**20, rss=8 * 2**20, disk_free=5 * 2**20)
    alarms = Alarms(ledger, bounds, cache=RecordCache())
    messages(alarms, ledger, 7 * 2**20)
    messages(alarms, ledger, 8 * 2**20)
    messages(alarms, ledger, 2 * 2**20)
    alarms.measure(Reading(rss_bytes=9 * 2**20, disk_free_bytes=2**20))
    alarms.measure(Reading(disk_free_bytes=7 * 2**20))
    alarms.measure(Reading(disk_free_bytes=7 * 2**20, store_is_full=True))
    first, over, process, disk, *rest = caplog.messages
    assert first.startswith("memory alarm: messages and buffers take 7.0 MiB, the limit is 6.0 MiB")
    assert first.endswith("publishers are blocked until they take 5.0 MiB")
    assert over == "memory alarm over: messages and buffers take 2.0 MiB"
    assert process.startswith("memory alarm: the process takes 9.0 MiB, the limit is 8.0 MiB")
    assert disk.startswith("disk alarm: 1.0 MiB are free for the data directory, the limit is 5.0")
    assert disk.endswith("until 6.0 MiB are free")
    assert rest[:2] == [
        "memory alarm over: messages and buffers take 2.0 MiB",
        "disk alarm over: 7.0 MiB are free",
    ]
    assert rest[2].startswith(
        "disk alarm: writes to the data directory fail for lack of space, with 7.0 MiB free"
    )
    assert len(rest) == 3
