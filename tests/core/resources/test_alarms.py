"""When alarms go on and off, by numbers alone."""

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


def short(alarms: Alarms, of: str = "") -> bool:
    """Whether there is an alarm; with `of`, whether that is short."""
    assert alarms.any is (alarms.memory or alarms.disk)
    return of in alarms.reason if of else alarms.any


def messages(alarms: Alarms, ledger: MemoryUsage, size_bytes: int) -> bool:
    """There are so many bytes of messages now; gives whether memory is short."""
    ledger.resident_bytes = size_bytes
    alarms.look()
    return alarms.memory


def test_without_bounds_nothing_is_an_alarm(ledger: MemoryUsage) -> None:
    alarms = Alarms(ledger, cache=RecordCache())
    ledger.resident_bytes = 2**60
    alarms.measure(Reading(other_bytes=2**60, rss_bytes=2**60, disk_free_bytes=0))
    assert not short(alarms)
    assert ledger.resident_bytes < alarms.ceiling_bytes
    assert alarms.reason == ""


def test_memory_is_short_above_its_limit_until_five_sixths(ledger: MemoryUsage) -> None:
    alarms = Alarms(ledger, Bounds(memory=600), cache=RecordCache())
    assert not messages(alarms, ledger, 600)
    assert messages(alarms, ledger, 601)
    assert short(alarms)
    assert alarms.reason == "low on memory"
    assert messages(alarms, ledger, 501)
    assert not messages(alarms, ledger, 500)
    assert not short(alarms)
    assert not messages(alarms, ledger, 600)


def test_memory_is_more_than_messages(ledger: MemoryUsage) -> None:
    alarms = Alarms(ledger, Bounds(memory=600), cache=RecordCache())
    alarms.measure(Reading(other_bytes=400))
    assert alarms.ceiling_bytes == 200
    assert not messages(alarms, ledger, 200)
    assert messages(alarms, ledger, 201)
    alarms.measure(Reading(other_bytes=0))
    assert not short(alarms, "memory")


def test_the_whole_process_is_the_second_guard(ledger: MemoryUsage) -> None:
    alarms = Alarms(ledger, Bounds(memory=600, rss=850), cache=RecordCache())
    ledger.resident_bytes = 151
    alarms.measure(Reading(rss_bytes=850))
    assert not short(alarms, "memory")
    alarms.measure(Reading(rss_bytes=851))
    assert short(alarms, "memory")
    alarms.measure(Reading(rss_bytes=720))
    assert short(alarms, "memory")
    alarms.measure(Reading(rss_bytes=708))
    assert not short(alarms, "memory")


def test_a_process_that_is_large_without_messages_is_no_alarm(ledger: MemoryUsage) -> None:
    """Memory that was freed need not leave the process: the alarm would never end."""
    alarms = Alarms(ledger, Bounds(memory=600, rss=850), cache=RecordCache())
    ledger.resident_bytes = 150
    alarms.measure(Reading(rss_bytes=2000))
    assert not short(alarms, "memory")
    ledger.resident_bytes = 151
    alarms.measure(Reading(rss_bytes=2000))
    assert short(alarms, "memory")
    ledger.resident_bytes = 126
    alarms.measure(Reading(rss_bytes=2000))
    assert short(alarms, "memory")
    ledger.resident_bytes = 125
    alarms.measure(Reading(rss_bytes=2000))
    assert not short(alarms, "memory")


def test_what_is_not_known_changes_nothing(ledger: MemoryUsage) -> None:
    alarms = Alarms(ledger, Bounds(memory=600, rss=850, disk_free=1000), cache=RecordCache())
    ledger.resident_bytes = 600
    alarms.measure(Reading(rss_bytes=None, disk_free_bytes=None))
    assert not short(alarms)
    alarms.measure(Reading(disk_free_bytes=999))
    alarms.measure(Reading(disk_free_bytes=None))
    assert short(alarms, "disk")


def test_disk_is_short_below_its_limit_until_six_fifths(ledger: MemoryUsage) -> None:
    alarms = Alarms(ledger, Bounds(disk_free=1000), cache=RecordCache())
    alarms.measure(Reading(disk_free_bytes=1000))
    assert not short(alarms, "disk")
    alarms.measure(Reading(disk_free_bytes=999))
    assert short(alarms, "disk")
    assert alarms.reason == "low on disk"
    alarms.measure(Reading(disk_free_bytes=1199))
    assert short(alarms, "disk")
    alarms.measure(Reading(disk_free_bytes=1200))
    assert not short(alarms, "disk")


def test_a_store_that_was_refused_space_is_an_alarm(ledger: MemoryUsage) -> None:
    """A quota: the file system has space, but not for us."""
    alarms = Alarms(ledger, cache=RecordCache())
    alarms.measure(Reading(disk_free_bytes=10**12, store_is_full=True))
    assert short(alarms)
    assert alarms.reason == "low on disk"
    alarms.measure(Reading(disk_free_bytes=10**12))
    assert not short(alarms)


def test_the_blocked_go_on_when_the_last_alarm_is_over(ledger: MemoryUsage) -> None:
    alarms = Alarms(ledger, Bounds(memory=600, disk_free=1000), cache=RecordCache())
    publisher, gone = Publisher(), Publisher()
    ledger.resident_bytes = 601
    alarms.measure(Reading(disk_free_bytes=0))
    assert alarms.reason == "low on memory & disk"
    alarms.block(publisher)
    alarms.block(gone)
    alarms.forget(gone)
    messages(alarms, ledger, 0)
    assert short(alarms)
    assert publisher.unblocked == 0
    alarms.measure(Reading(disk_free_bytes=2000))
    assert not short(alarms)
    assert (publisher.unblocked, gone.unblocked) == (1, 0)
    messages(alarms, ledger, 601)
    messages(alarms, ledger, 0)
    assert publisher.unblocked == 1


def test_other_bounds_count_at_once(ledger: MemoryUsage) -> None:
    alarms = Alarms(ledger, cache=RecordCache())
    ledger.resident_bytes = 601
    alarms.bounds = Bounds(memory=600)
    assert short(alarms, "memory")
    alarms.bounds = Bounds()
    assert not short(alarms)


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
    assert first.endswith("publishers are not read until they take 5.0 MiB")
    assert over == "memory alarm over: messages and buffers take 2.0 MiB"
    assert process.startswith("memory alarm: the process takes 9.0 MiB, the limit is 8.0 MiB")
    assert disk.startswith("disk alarm: 1.0 MiB are free for the data directory, the limit is 5.0")
    assert disk.endswith("until 6.0 MiB are free")
    assert rest[:2] == [
        "memory alarm over: messages and buffers take 2.0 MiB",
        "disk alarm over: 7.0 MiB are free",
    ]
    assert rest[2].startswith("disk alarm: the data directory takes no more, though 7.0 MiB")
    assert len(rest) == 3
