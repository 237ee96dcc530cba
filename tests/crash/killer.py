"""F1: a server that is killed again and again under load, and what came of its promises."""

from __future__ import annotations

import contextlib
import math
import random
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.process import wait_until
from tests.support.server import WarrenServer, warren_command

from .journal import UNKNOWN
from .lives import Lives
from .load import Load
from .verdict import Verdict

STEPS = 100
WORK_S = 60.0
"""A server that confirms nothing for so long hangs."""


@dataclass(frozen=True)
class Options:
    """How a run goes on until there were so many kills and confirmed messages."""

    kills: int
    messages: int
    seed: int
    shortest_s: float = 0.2
    longest_s: float = 5.0
    early: float = 0.1
    """The share of kills that hit a server which is not ready yet."""
    polite: float = 0.03
    """The share of ends that are SIGTERM, after which the exit code has to be 0."""
    drain_every: int = 100
    transactions: bool = True
    serve: Sequence[str] = ()
    """More for the server's command line."""

    def interval_s(self, share: float) -> float:
        """From the shortest to the longest life as `share` goes from 0 to 1; most are short."""
        return self.shortest_s * math.pow(self.longest_s / self.shortest_s, share * share)

    @property
    def mean_s(self) -> float:
        return statistics.fmean(self.interval_s((step + 0.5) / STEPS) for step in range(STEPS))


@dataclass
class Course:
    """What happened to the server."""

    kills: int = 0
    early: int = 0
    stops: int = 0
    restarts_s: list[float] = field(default_factory=list)
    log_bytes: list[int] = field(default_factory=list)
    seconds: float = 0.0

    def figures(self) -> dict[str, object]:
        rates = [
            seconds / (size / 2**30)
            for seconds, size in zip(self.restarts_s, self.log_bytes, strict=True)
            if size > 2**28
        ]
        return {
            "kills": self.kills,
            "killed_in_recovery": self.early,
            "stops": self.stops,
            "seconds": round(self.seconds, 1),
            "restart_p50_s": round(statistics.median(self.restarts_s), 3),
            "restart_max_s": round(max(self.restarts_s), 3),
            "restart_max_s_per_gib": round(max(rates), 2) if rates else None,
            "log_max_bytes": max(self.log_bytes),
        }


Tell = Callable[[str], None]


class Killer:
    """Owns the server; `data` stays where it is."""

    def __init__(self, options: Options, data: Path, tell: Tell = lambda line: None) -> None:
        self.options = options
        self.server = WarrenServer(data=data, args=options.serve, command=warren_command())
        self.lives = Lives(self.server)
        self.site = self.lives.site
        self.course = Course()
        self._data = data
        self._tell = tell
        self._random = random.Random(options.seed)
        self._mean_s = options.mean_s
        self._born = 0.0
        self._confirmed_before = 0
        self._unknown = 0

    def run(self) -> Verdict:
        """Kills under load until enough was killed and confirmed, then drains and judges."""
        begun = time.monotonic()
        with contextlib.ExitStack() as stack:
            stack.push(self.server)
            stack.callback(self.site.end_life)
            self._start()
            self._load = Load(self.site, transactions=self.options.transactions)
            self.site.pace.allowed = self._allowed
            self._load.start()
            try:
                self._kill_all()
                self._finish()
            except RuntimeError as error:
                self.lives.fault(f"does not start any more: {error}")
        self.course.seconds = time.monotonic() - begun
        return self.site.checker.verdict()

    def _allowed(self) -> float:
        """In step with the kills, so that each of them hits a busy server; what a kill left
        without an answer may be sent again in other words."""
        options = self.options
        share = (time.monotonic() - self._born) / self._mean_s
        ends = self.course.kills + self.course.stops - self.course.early
        wanted = options.messages * (ends + min(1.0, share)) / (options.kills * (1 - options.early))
        return wanted + self._unknown

    def _kill_all(self) -> None:
        while not self._done():
            threading.Event().wait(self.options.interval_s(self._random.random()))
            wait_until(self._has_worked, WORK_S, "a confirm in this life of the server")
            if not self.lives.are_going_on():
                return
            ends = self.course.kills + self.course.stops
            if ends % self.options.drain_every == self.options.drain_every - 1:
                if not self._load.drain():
                    return
                self.site.calm.clear()
            self._end_life()
            self._start()
            self._report()

    def _has_worked(self) -> bool:
        """However slow the machine is, a kill hits a server that has confirmed something."""
        is_fed = self._load.confirmed > self._confirmed_before or self.site.pace.room() < 1
        return is_fed or not self.server.running

    def _done(self) -> bool:
        if self.course.kills < self.options.kills:
            return False
        return self._load.confirmed >= self.options.messages

    def _end_life(self) -> None:
        if self._random.random() < self.options.polite:
            self._stop()
        else:
            self.lives.kill()
            self.course.kills += 1
        self._confirmed_before = self._load.confirmed
        self._unknown = sum(one.count(UNKNOWN) for one in self.site.checker.journals)

    def _stop(self) -> None:
        self.lives.stop()
        self.course.stops += 1

    def _start(self) -> None:
        """Restarts; now and then a start is killed before the server is ready."""
        while self.course.restarts_s and self._random.random() < self.options.early:
            self._kill_early(self._random.uniform(0.0, self.course.restarts_s[-1]))
        begun = time.monotonic()
        self.lives.start()
        self.course.restarts_s.append(time.monotonic() - begun)
        self.course.log_bytes.append(_size(self._data / "log"))
        self._born = time.monotonic()

    def _kill_early(self, after_s: float) -> None:
        timer = threading.Timer(after_s, self._kill_if_started)
        timer.start()
        try:
            self.server.start()
        except RuntimeError as error:
            if self.server.process.returncode != -9:
                self.lives.fault(str(error))
        timer.join()
        if self.server.running:
            self.server.kill()
        self.course.kills += 1
        self.course.early += 1
        self.lives.read_output()

    def _kill_if_started(self) -> None:
        if self.server.running:
            self.server.kill()

    def _finish(self) -> None:
        """Drains; what was acked stays so over a stop and a start."""
        if not self.server.running:
            self.site.end_life()
            self._start()
        self._load.finish()
        self._load.count_rest()
        self._stop()
        self._start()
        self._load.count_rest()
        self._stop()
        self.lives.verify()

    def _report(self) -> None:
        self._tell(
            f"{self.course.kills} kills, {self._load.confirmed} confirmed, "
            f"ready after {self.course.restarts_s[-1]:.2f} s, "
            f"{self.course.log_bytes[-1] / 2**20:.0f} MiB of log"
        )


def _size(directory: Path) -> int:
    if not directory.exists():
        return 0
    total = 0
    for path in directory.rglob("*"):
        with suppress(FileNotFoundError):  # the server deletes files meanwhile
            total += path.stat().st_size if path.is_file() else 0
    return total
