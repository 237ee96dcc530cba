"""Reports the progress of a run, and tells it when to stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Literal, TextIO

State = Literal["running", "done", "failed"]
GAP_S: Final = 1.0
"""The least time between two reports, but for the last."""
SILENCE_S: Final = 60.0
"""About the most: the server takes a run that is silent for ten minutes for lost."""


@dataclass(frozen=True, slots=True)
class Report:
    """A progress report of a run. `rows` are messages that it has processed since it began, `lag`
    is how many of the stream come behind them, None until it is known; `dropped` are those that
    came too late to be counted."""

    state: State
    rows: int
    rows_per_s: float
    lag: int | None
    error: str | None = None
    dropped: int = 0

    def line(self) -> str:
        text = f"{self.state}: {self.rows:,} rows, {self.rows_per_s:,.0f} rows/s"
        text += "" if self.lag is None else f", lag {self.lag:,}"
        return f"{text}, {self.dropped:,} too late and dropped" if self.dropped else text


class Progress:
    """Counts the rows of one run and reports them. Threads may share it."""

    def __init__(self, *reporters: Callable[[Report], None], silence_s: float = SILENCE_S) -> None:
        self._reporters = reporters
        self._silence_s = silence_s
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._began_s, self._reported_s = time.monotonic(), 0.0
        self._rows = 0
        self._lag: int | None = None
        self._dropped = 0

    @property
    def stopped(self) -> bool:
        """Whether the run is to end once what it has begun is complete."""
        return self._stopped.is_set()

    def stop(self) -> None:
        self._stopped.set()

    def wait(self, seconds: float) -> None:
        """Returns after this time, or as soon as the run is to end."""
        self._stopped.wait(seconds)

    def add(self, rows: int, lag: int | None = None) -> None:
        """Counts messages whose results are on disk; `lag` is what comes behind them in the stream.
        Says nothing where nothing has changed."""
        with self._lock:
            if not rows and lag in (None, self._lag):
                return
            self._rows += rows
            self._lag = lag if lag is not None else self._lag
        self._report("running", after_s=GAP_S)

    def drop(self, rows: int) -> None:
        """Counts messages that came too late to be counted by the job."""
        with self._lock:
            self._dropped += rows

    @contextmanager
    def alive(self) -> Iterator[None]:
        """Reports again whenever nothing was said for a minute: a run may be idle, or busy with one
        thing, for longer than the server waits."""
        ended = threading.Event()

        def repeat() -> None:
            while not ended.wait(self._silence_s / 4):
                self._report("running", after_s=self._silence_s)

        thread = threading.Thread(target=repeat, name="alive", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def end(self, error: str | None = None) -> None:
        """Reports that the run is done, or has failed."""
        self._report("done" if error is None else "failed", error)

    def _report(self, state: State, error: str | None = None, *, after_s: float = 0.0) -> None:
        with self._lock:
            now_s = time.monotonic()
            if now_s - self._reported_s < after_s:
                return
            self._reported_s = now_s
            rows_per_s = self._rows / max(now_s - self._began_s, 0.001)
            for reporter in self._reporters:
                reporter(Report(state, self._rows, rows_per_s, self._lag, error, self._dropped))


def on_terminal(name: str, screen: TextIO) -> Callable[[Report], None]:
    """Returns a reporter that keeps one line of a terminal up to date; into a file or a pipe it
    writes a line each time."""

    def show(report: Report) -> None:
        line = f"{name} {report.line()}"
        if not screen.isatty():
            print(line, file=screen, flush=True)
        else:
            end = "" if report.state == "running" else "\n"
            print(f"\r\x1b[K{line}", end=end, file=screen, flush=True)

    return show
