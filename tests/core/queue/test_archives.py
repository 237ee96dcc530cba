"""Retention by archive: a stream keeps the messages that its archive has not reported."""

from __future__ import annotations

import logging

import pytest

from tests.core.life import Life, numbered
from tests.core.queue.reading import declare, fill, stream
from warrenmq.core.definitions.archives import ArchiveReport
from warrenmq.core.errors import ChannelError
from warrenmq.core.message.queue_entry import PagedOut
from warrenmq.core.queue.archives import ARCHIVES_MAX
from warrenmq.core.queue.rules import Rules


def report(life: Life, offset: int, archive: str = "cold") -> None:
    stream(life).report_archive(archive, ArchiveReport(offset, 1, "/archives/s"))
    life.turns()


@pytest.mark.parametrize("is_paged_out", [False, True])
def test_retention_drops_only_archived_messages(life: Life, *, is_paged_out: bool) -> None:
    declare(life, max_length_bytes=5_000, archive="cold")
    fill(life, numbered(200))
    assert stream(life).log.first == 0, "before the first report"
    if is_paged_out:
        life.restart()
        assert isinstance(next(iter(stream(life).log.chunks)).content, PagedOut)
    report(life, 150, "another")
    assert stream(life).log.first == 0
    report(life, 37)
    assert 30 <= stream(life).log.first <= 37
    report(life, 38)
    fill(life, numbered(10))
    assert 30 <= stream(life).log.first <= 38
    report(life, 210)
    log = stream(life).log
    assert 38 < log.first < 200 and log.size_bytes <= 5_000


def test_floor_is_restored_before_anything_is_dropped(life: Life) -> None:
    declare(life, max_length_bytes=5_000, archive="cold")
    fill(life, numbered(200))
    report(life, 20)
    life.write()
    for restart in (life.restart, life.crash):
        restart()
        life.turns()
        fill(life, numbered(5))
        assert 15 <= stream(life).log.first <= 20
        assert stream(life).archives.reports == {"cold": ArchiveReport(20, 1, "/archives/s")}


def test_retention_by_age_keeps_unarchived_messages(life: Life) -> None:
    declare(life, max_age="1h", archive="cold")
    for body in numbered(5):
        fill(life, [body])
        life.clock.advance(600_000)
    life.turns(10, each_ms=600_000)
    assert stream(life).log.first == 0
    assert "over its limit of 3600" in str(stream(life).exceeded())
    report(life, 3)
    life.turns(3, each_ms=60_000)
    assert stream(life).log.first == 3


def test_a_change_of_the_archive_and_its_end(life: Life) -> None:
    declare(life, max_length_bytes=5_000, archive="cold")
    fill(life, numbered(200))
    report(life, 20)
    stream(life).forget_archive("cold")
    fill(life, numbered(5))
    assert stream(life).log.first <= 20
    stream(life).apply(Rules(max_length_bytes=5_000))
    life.turns()
    assert stream(life).log.first > 20


def test_exceeded_limits_are_warned_about_once_a_minute(
    life: Life, caplog: pytest.LogCaptureFixture
) -> None:
    declare(life, max_length_bytes=2_000, archive="cold")
    with caplog.at_level(logging.WARNING):
        fill(life, numbered(100))
        assert len(caplog.records) == 1
        life.clock.advance(61_000)
        fill(life, numbered(2))
        assert len(caplog.records) == 2
    assert (
        "over its limit of 2000; everything from offset 0 on is kept, since archive 'cold' has"
        in (caplog.text)
    )
    assert "bytes, over its limit of 2000" in str(stream(life).exceeded())
    report(life, 102)
    assert stream(life).exceeded() is None


def test_number_of_archives_is_limited(life: Life) -> None:
    declare(life)
    for number in range(ARCHIVES_MAX):
        report(life, 0, str(number))
    with pytest.raises(ChannelError, match="the limit is 100"):
        report(life, 0, "more")
    report(life, 0, "7")
    stream(life).forget_archive("7")
    report(life, 0, "more")
