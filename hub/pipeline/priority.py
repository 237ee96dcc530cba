"""Lowers the priority of a process that takes all the processors it gets."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

_HIGHEST: Final = 19
_SESSIONS_GAP_S: Final = 0.1
"""Linux lets users change the niceness of sessions ten times a second."""


def lower_priority(pid: int, niceness: int) -> None:
    """Gives all threads of a process, and so what they start, at least this niceness, and its
    session too if that is not the caller's. Does nothing where threads have no priority of their
    own, as on all systems but Linux; sessions are left alone where they have no niceness."""
    threads = Path(f"/proc/{pid}/task")
    if not threads.exists():
        return
    niceness = min(niceness, _HIGHEST)
    while eager := [int(one.name) for one in threads.iterdir() if _niceness(one.name) < niceness]:
        for thread in eager:
            with suppress(ProcessLookupError):  # It has ended meanwhile.
                os.setpriority(os.PRIO_PROCESS, thread, niceness)
    _lower_session(pid, niceness)


def _lower_session(pid: int, niceness: int) -> None:
    """Gives the session of a process this niceness. With autogroups (sched(7)), Linux divides
    processors among sessions, and compares the niceness of threads within one session alone."""
    group = Path(f"/proc/{pid}/autogroup")
    # Without autogroups the file is missing or empty; in a container it may be read-only.
    if os.getsid(pid) == os.getsid(0) or not os.access(group, os.W_OK) or not group.read_text():
        return
    while True:
        try:
            group.write_text(str(niceness))
            return
        except BlockingIOError:
            time.sleep(_SESSIONS_GAP_S)


def _niceness(thread: str) -> int:
    try:
        return os.getpriority(os.PRIO_PROCESS, int(thread))
    except ProcessLookupError:
        return _HIGHEST
