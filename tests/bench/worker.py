"""Load processes: ready, go, a few words on the way, and one result or one error."""

from __future__ import annotations

import multiprocessing
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

SETUP_TIMEOUT_S = 60.0
JOIN_TIMEOUT_S = 5.0

# Forked workers share the encoded frames with the parent instead of getting a copy each.
_context = multiprocessing.get_context("fork")


class Control:
    """The worker's end: `ready()` blocks until every worker of the scenario is ready."""

    def __init__(self, pipe: Connection) -> None:
        self.pipe = pipe

    def ready(self) -> None:
        self.pipe.send(("ready", None))
        self.pipe.recv()


def _main(pipe: Connection, target: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        pipe.send(("result", target(Control(pipe), *arguments)))
    except KeyboardInterrupt:
        return
    except Exception:
        pipe.send(("error", traceback.format_exc()))


class WorkerError(Exception):
    """A load process failed; the text holds its traceback."""


class Worker:
    """Runs `target(control, *arguments)` in a process of its own."""

    def __init__(self, target: Callable[..., Any], *arguments: Any) -> None:
        self.pipe, theirs = _context.Pipe()
        self._process = _context.Process(
            target=_main, args=(theirs, target, arguments), daemon=True
        )
        self._process.start()
        theirs.close()

    def _receive(self, kind: str, timeout_s: float) -> Any:
        if not self.pipe.poll(timeout_s):
            raise WorkerError(f"no '{kind}' from a load process within {timeout_s} s")
        try:
            got, value = self.pipe.recv()
        except EOFError:
            raise WorkerError("a load process ended without a result") from None
        if got != kind:
            raise WorkerError(str(value))
        return value

    def wait_ready(self) -> None:
        self._receive("ready", SETUP_TIMEOUT_S)

    def result(self, timeout_s: float) -> Any:
        return self._receive("result", timeout_s)

    def stop(self) -> None:
        """Ends the process if it still runs."""
        self.pipe.close()
        if self._process.is_alive():
            self._process.join(0.2)
        if self._process.is_alive():
            self._process.terminate()
            self._process.join(JOIN_TIMEOUT_S)


class Crew:
    """The load processes of one scenario; all are stopped on exit."""

    def __init__(self) -> None:
        self._workers: list[Worker] = []

    def hire(self, target: Callable[..., Any], *arguments: Any) -> Worker:
        """Starts a process and returns when it is ready."""
        worker = Worker(target, *arguments)
        self._workers.append(worker)
        worker.wait_ready()
        return worker

    def go(self) -> None:
        for worker in self._workers:
            worker.pipe.send("go")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for worker in self._workers:
            worker.stop()
