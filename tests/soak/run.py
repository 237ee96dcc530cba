"""The rounds of a soak: load, drain, settling, rest, and now and then the end of a life.

Lives end in turn with SIGTERM in a rest and with SIGKILL in the middle of the load.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from tests.bench.client import BenchError
from tests.crash.lives import Lives
from tests.crash.load import Load
from tests.crash.site import Worker
from tests.crash.verdict import Verdict
from tests.support.server import WarrenServer, warren_command

from .bounds import Course
from .churn import Channels, Churn, Connections, Queues
from .hub import HubLoad
from .probe import Probe
from .sample import RestMeter, take_sample
from .stream import StreamLoad
from .target import Target

ROUND_S = 2.0, 150.0
"""The shortest and the longest round."""
ROUNDS = 12
LIVES = 3
ENVIRONMENT = {"WARREN_FETCH_GAP_S": "0.5"}
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Options:
    """`rate` is how many messages a second the publishers may send together."""

    rounds: int
    load_s: float
    settle_s: float
    rest_s: float
    seed: int
    rate: float = 2_000.0
    rounds_a_life: int = 4
    serve: Sequence[str] = ()

    @classmethod
    def of(cls, seconds: float, seed: int, rate: float, serve: Sequence[str]) -> Options:
        """Rounds that take about so long together; drains and restarts come on top."""
        round_s = min(max(seconds / ROUNDS, ROUND_S[0]), ROUND_S[1])
        rounds = max(2, round(seconds / round_s))
        phases = 0.6 * round_s, 0.2 * round_s, 0.2 * round_s
        return cls(rounds, *phases, seed, rate, max(2, rounds // LIVES), serve)


class Stopped(Exception):
    """The run can't go on; the checker has the reason."""


class Soak:
    """Owns the server; `data` stays where it is."""

    def __init__(self, options: Options, data: Path, tell: Tell = lambda line: None) -> None:
        self.options = options
        self.server = WarrenServer(
            data=data, args=options.serve, env=ENVIRONMENT, command=warren_command()
        )
        self.lives = Lives(self.server)
        self.site = self.lives.site
        self.course = Course()
        self._tell = tell
        self._begun_s = self._budget = 0.0

    def run(self) -> Verdict:
        """All rounds; then what was confirmed is looked for, over one more restart."""
        with contextlib.ExitStack() as stack:
            target = stack.enter_context(Target())
            stack.push(self.server)
            stack.callback(self.site.end_life)
            self._start()
            self._make_load(target)
            try:
                for number in range(self.options.rounds):
                    self._round(number)
                self._finish()
            except Stopped:
                pass
            except (RuntimeError, OSError, BenchError) as error:
                # A server that has ended by itself is the reason, whatever was noticed first.
                if self.lives.are_going_on():
                    self.lives.fault(f"{type(error).__name__}: {error}")
        return self.site.checker.verdict()

    def rounds_of_clients(self) -> dict[str, int]:
        """Returns the number of runs of each client that comes and goes."""
        return {one.name: one.rounds for one in self._others if isinstance(one, Churn)}

    def _start(self) -> None:
        begun = time.monotonic()
        self.lives.start()
        self.course.restarts_s.append(time.monotonic() - begun)

    def _restart(self, signal: str, end: Callable[[], None]) -> None:
        begun = time.monotonic()
        end()
        ended_s = time.monotonic() - begun
        self._start()
        self._tell(
            f"{signal}: ended in {ended_s:.1f} s, ready in {self.course.restarts_s[-1]:.1f} s"
        )

    def _make_load(self, target: Target) -> None:
        site, seed = self.site, self.options.seed
        self._load = Load(site)
        self._hub = HubLoad(site, target, seed)
        self._stream = StreamLoad(site)
        site.pace.allowed = self._allowed
        site.calm.set()
        self._hub.subscribe()
        self._stream.declare()
        kinds = Channels, Connections, Queues
        churns = [kind(site, kind.__name__.lower(), seed) for kind in kinds]
        self._others: list[Worker] = [*self._hub.workers, *self._stream.workers, *churns]
        self._load.start()
        for worker in self._others:
            worker.start()

    def _allowed(self) -> float:
        return self._budget + self.options.rate * (time.monotonic() - self._begun_s)

    def _round(self, number: int) -> None:
        life, in_life = divmod(number, self.options.rounds_a_life)
        options = self.options
        self._resume()
        with self._phase(number, "load"):
            Event().wait(options.load_s / 2)
        if number and in_life == 0 and life % 2 == 0:
            self._restart("SIGKILL", self.lives.kill)
        with self._phase(number, "load"):
            Event().wait(options.load_s / 2)
        with self._phase(number, "drain"):
            self._drain()
        with self._phase(number, "settling"):
            Event().wait(options.settle_s)
        self._rest(number)
        is_last = number + 1 == options.rounds
        if in_life == options.rounds_a_life - 1 and life % 2 == 0 and not is_last:
            self._restart("SIGTERM", self.lives.stop)

    def _resume(self) -> None:
        self._budget = sum(one.attempted for one in self.site.checker.journals)
        self._begun_s = time.monotonic()
        self.site.calm.clear()

    @contextlib.contextmanager
    def _phase(self, number: int, name: str) -> Iterator[None]:
        """With the probe beside it; a server that ended by itself ends the run."""
        assert self.site.http is not None
        begun, probe = time.monotonic(), Probe(self.site.http, self.server.pid)
        try:
            yield
        finally:
            latency = probe.stop()
        if not self.lives.are_going_on():
            raise Stopped
        self.course.latencies.append(latency)
        self._tell(
            f"round {number + 1} {name}: {time.monotonic() - begun:.1f} s, "
            f"{self._load.confirmed:,} confirmed; health p50 {latency.p50_ms} ms, "
            f"p99 {latency.p99_ms} ms, longest {latency.max_ms} ms, "
            f"of which {latency.stall_ms} ms without waits for a processor"
        )

    def _drain(self) -> None:
        """Waits for all that was confirmed; ends the run when some of it does not come."""
        if not (self._load.drain() and self._hub.drain()):
            self._load.count_rest()
            raise Stopped
        self._stream.audit()

    def _rest(self, number: int) -> None:
        meter = RestMeter(self.server.pid)
        Event().wait(self.options.rest_s)
        rest = meter.read()
        printed = self.lives.output_bytes + len(self.server.output())
        sample = take_sample(self.site.life, self.server.pid, self.server.data, printed)
        self.course.rests.append(rest)
        self.course.samples.append(sample)
        self._tell(
            f"round {number + 1} rest: CPU {rest.cpu_share:.2%}, "
            f"{rest.written_bytes_per_s:,.0f} bytes/s written; "
            f"memory {sample.memory_bytes / 2**20:.1f} MiB, {sample.open_files} files, "
            f"data {sample.data_bytes / 2**20:.1f} MiB, output {sample.output_bytes:,} bytes"
        )

    def _finish(self) -> None:
        for worker in self._others:
            worker.stop()
        self._load.finish()
        self._load.count_rest()
        self.lives.stop()
        self._start()
        self._load.count_rest()
        self.lives.stop()
        self.lives.verify()
