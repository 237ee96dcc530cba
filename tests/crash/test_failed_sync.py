"""F6: the disk fails. Nothing is confirmed from then on, and the process says so and ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.process import wait_until
from tests.support.server import WarrenServer

from .faults import injected
from .support import Sender, drain, numbers

pytestmark = pytest.mark.promise

BATCHES, BATCH = 10, 20


@pytest.mark.parametrize(
    ("calls", "fault"),
    [
        ("fdatasync", "error=EIO:when=1+"),
        ("fdatasync", "error=EIO:when=1"),
        ("fdatasync", "error=EIO:when=4"),
        ("fdatasync", "error=ENOSPC:when=2"),
        ("pwritev,pwritev2", "error=EIO:when=2"),
    ],
)
def test_a_failed_disk_confirms_nothing_more(
    server: WarrenServer, tmp_path: Path, calls: str, fault: str
) -> None:
    sender, other = Sender(server, "q"), Sender(server, "q", first=10_000)
    with sender, other:
        sender.publish(100)
        with injected(server, calls, fault, tmp_path) as injection:
            publish_until_it_fails(sender, other)
            assert injection.fired, "nothing was injected"
    wait_until(lambda: not server.running, 20.0, "the end of the process")
    assert server.process.returncode not in (0, -9)
    assert "Traceback" not in server.output()
    server.start()
    kept = set(numbers(drain(server, "q")))
    confirmed = {*sender.fates.confirmed, *other.fates.confirmed}
    assert confirmed <= kept
    with Sender(server, "q", first=20_000) as again:
        assert len(again.publish(10).confirmed) == 10


def publish_until_it_fails(sender: Sender, other: Sender) -> None:
    """The other one's publishes wait for the same syncs."""
    for _ in range(BATCHES):
        sender.send(BATCH)
        other.send(BATCH)
        if not (sender.wait_or_end() and other.wait_or_end()):
            break
        if sender.fates.nacked or other.fates.nacked:
            break
    else:
        raise AssertionError("the disk failed, and everything was confirmed")
    for one in (sender, other):
        confirmed = len(one.fates.confirmed)
        if one.wait_or_end():
            one.send(BATCH)
            one.wait_or_end()
        assert len(one.fates.confirmed) == confirmed, "confirmed after the failure"
