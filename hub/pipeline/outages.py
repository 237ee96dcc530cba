"""Keeps a run with `--follow` over times in which the server can't be reached."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from .errors import UnavailableError
from .options import ServerLogin
from .progress import Progress
from .server import ServerClient
from .spark_errors import explain

logger = logging.getLogger(__name__)

WAIT_S: Final = 3600.0
"""How long a run waits if nothing says it. What is not processed stays in the stream."""
_GAP_S: Final = 2.0
"""Between two requests whether the server is back."""


def run_over_outages(
    run: Callable[[], None], server: ServerLogin, progress: Progress, wait_s: float
) -> None:
    """Calls `run`, and again after each time in which the server could not be reached: a job goes
    on where its directory ends. Returns when `run` does, or when the run is stopped meanwhile.

    Raises what `run` raises; `UnavailableError` if the server is not back after `wait_s`.
    """
    while True:
        try:
            return run()
        except Exception as error:
            failure = explain(error)
            if not isinstance(failure, UnavailableError):
                raise
            if not progress.stopped:
                logger.warning("%s; waiting for the server, %g s at most", failure, wait_s)
            if not _is_back(server, progress, wait_s):
                if progress.stopped:
                    return
                raise


def _is_back(server: ServerLogin, progress: Progress, wait_s: float) -> bool:
    """Returns true once the server answers; false after `wait_s`, or when the run is stopped."""
    deadline_s = time.monotonic() + wait_s
    while not progress.stopped and time.monotonic() < deadline_s:
        try:
            with ServerClient(server) as client:
                client.get("/health/live")
        except UnavailableError:
            progress.wait(_GAP_S)
        else:
            return True
    return False
