"""F1 for what is read by offset: a server that is killed again and again under load."""

from __future__ import annotations

import random
from pathlib import Path
from threading import Event

import pytest

from tests.bench.client import Address
from tests.conformance import frames as tables
from tests.support.process import wait_until
from tests.support.server import WarrenServer

from .clients import connected
from .journal import CONFIRMED
from .plan import BATCHES, SINGLES
from .publishers import ConfirmPublisher, Habit
from .site import Site
from .streaming import Following, Offsets, read_exchange, read_stream
from .wire import Form

pytestmark = pytest.mark.promise

KILLS = 3
LIFE_S = 0.2, 0.7
WORK_S = 60.0
MESSAGES_A_LIFE = 12_000
SHORT_BYTES = 100_000


class Run:
    """A server with publishers to streams and to a persistent exchange, and readers of them."""

    def __init__(self, data: Path, seed: int) -> None:
        self.server = WarrenServer(dev=True, data=data, args=("--segment-bytes", "1MiB"))
        self.site = Site(Address(self.server.host, self.server.amqp_port))
        self.site.pace.allowed = lambda: MESSAGES_A_LIFE * self.site.life
        self._random = random.Random(seed)
        self._publishers: list[ConfirmPublisher] = []
        self.batches = self._offsets("batches", "", BATCHES[:3], 60)
        self.singles = self._offsets("singles", "", SINGLES, 30)
        self.short = self._offsets("short", "", BATCHES[:2], 200)
        self.kept = self._offsets("kept", "kept", BATCHES[:2], 50)
        self._readers = [Following(self.site, one) for one in (self.batches, self.singles)]
        self.first = 0

    def _offsets(self, name: str, exchange: str, habits: tuple[Habit, ...], size: int) -> Offsets:
        journal = self.site.checker.publisher(name, ())
        form = Form(journal.publisher, exchange, "" if exchange else name, size)
        self._publishers.append(ConfirmPublisher(self.site, journal, [form], habits))
        return Offsets(name, journal)

    @property
    def all(self) -> tuple[Offsets, ...]:
        return self.batches, self.singles, self.short, self.kept

    def declare(self) -> None:
        with connected(self.site.amqp) as client:
            for name, more in (
                ("batches", {}), ("singles", {}), ("short", {"x-max-length-bytes": SHORT_BYTES}),
            ):  # fmt: skip
                table = tables.table({"x-queue-type": "stream", **more})
                client.declare_queue(name, durable=True, arguments=table[4:])
            kept = tables.table({"x-persist-messages": 10**9})[4:]
            client.declare_exchange("kept", "fanout", durable=True, arguments=kept)

    def live(self) -> None:
        """One life, which ends with a kill."""
        self.site.begin_life()
        Event().wait(self._random.uniform(*LIFE_S))
        wait_until(self._has_worked, WORK_S, "confirms and reads of every stream in this life")
        assert self.server.running, self.server.output()
        self.site.end_life()
        self.server.kill()
        assert "Traceback" not in self.server.output()
        self.server.start()

    def _has_worked(self) -> bool:
        """However slow the machine is, a kill hits publishers and readers that are at work."""
        confirmed = all(one.journal.count(CONFIRMED) > 25 * self.site.life for one in self.all)
        followed = all(one.following > 25 * self.site.life for one in (self.batches, self.singles))
        return (confirmed and followed) or not self.server.running

    def audit(self) -> None:
        """Between two lives, when nobody publishes."""
        for offsets in (self.batches, self.singles):
            offsets.audit(read_stream(self.site, offsets.name))
        short = read_stream(self.site, "short")
        first = short[0].offset if short else self.first
        if first < self.first:
            self.short.fault(f"it began at {self.first}, now it begins at {first}")
        self.first = first
        self.short.audit(short, first)
        kept = read_exchange(self.site, "kept")
        self.kept.audit(kept)
        middle = len(kept) // 2
        if read_exchange(self.site, "kept", middle) != kept[middle:]:
            self.kept.fault(f"from {middle} on it is not the same")

    def start(self) -> None:
        for worker in (*self._readers, *self._publishers):
            worker.start()

    def end(self) -> None:
        self.site.begin_life()
        self.site.calm.set()
        for worker in (*self._publishers, *self._readers):
            worker.stop()
        self.site.end_life()


@pytest.mark.timeout(600)
def test_offsets_over_kills(tmp_path: Path) -> None:
    run = Run(tmp_path / "data", seed=7)
    with run.server:
        run.declare()
        run.start()
        for _ in range(KILLS):
            run.live()
            run.audit()
        run.end()
        run.audit()
        assert run.server.stop() == 0
    verdict = run.site.checker.verdict()
    assert verdict.valid, "\n".join(verdict.examples)
    faults = [fault for offsets in run.all for fault in offsets.faults]
    assert not faults, "\n".join(faults[:10])
    assert all(offsets.journal.count(CONFIRMED) > 100 for offsets in run.all)
    assert all(offsets.following > 100 for offsets in (run.batches, run.singles))
    assert run.first > 0, "nothing of the short one was dropped"
