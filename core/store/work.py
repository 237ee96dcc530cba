"""Runs jobs of the store on worker threads: reads, checkpoints, compaction."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from ..slices import Pause

Result = TypeVar("Result")


class Worker:
    """Runs jobs on threads once it is started; before that, in `deliver`."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._post: Callable[[Callable[[], None]], None] | None = None
        self._pending: deque[tuple[Callable[[], Any], Callable[[Any], None]]] = deque()
        self._delivering = False
        self.failed: Callable[[BaseException], None] = _raise
        """Called with the error of a job that raised, instead of its `done`."""

    def start(self, post: Callable[[Callable[[], None]], None]) -> None:
        self._post = post
        self._pool = ThreadPoolExecutor(2, thread_name_prefix="log-worker")
        pending, self._pending = self._pending, deque()
        for job, done in pending:
            self.run(job, done)

    def stop(self) -> None:
        """Waits for the jobs that have begun, and cancels the others."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None
        self._post = None
        self.deliver()

    def run(self, job: Callable[[], Result], done: Callable[[Result], None]) -> None:
        """Runs a job; calls `done` with its result on the broker's thread, after this returns."""
        if self._pool is None:
            self._pending.append((job, done))
        else:

            def ended(future: Future[Result]) -> None:
                if future.cancelled():
                    return
                error = future.exception()
                if error is None:
                    self.post(lambda: done(future.result()))
                else:
                    self.post(lambda: self.failed(error))

            self._pool.submit(job).add_done_callback(ended)

    def awaited(self, job: Callable[[], Result]) -> Generator[Pause, None, Result]:
        """Runs a job for sliced work: yields a `Pause`, then returns the result. If the caller does
        not wait, the job is run again on the caller's thread."""
        pause = Pause()
        results: list[Result] = []

        def done(result: Result) -> None:
            results.append(result)
            pause.end()

        self.run(job, done)
        yield pause
        return results[0] if results else job()

    def _do(self, job: Callable[[], Result], done: Callable[[Result], None]) -> None:
        try:
            result = job()
        except Exception as error:
            self.failed(error)
        else:
            done(result)

    def post(self, action: Callable[[], None]) -> None:
        """Calls `action` on the broker's thread."""
        if self._post is None:
            action()
        else:
            self._post(action)

    def deliver(self) -> None:
        """Runs the pending jobs, if there are no threads."""
        if self._delivering:
            return
        self._delivering = True
        try:
            while self._pending:
                self._do(*self._pending.popleft())
        finally:
            self._delivering = False


def _raise(error: BaseException) -> None:
    raise error
