"""A process of many threads gives way to others, and so does what it starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from warrenmq.hub.pipeline.priority import lower_priority

NICENESS = 15
PROGRAM = """
import os, subprocess, sys, threading
ready, told = threading.Barrier(3), threading.Event()
def work():
    ready.wait()
    told.wait()
    sys.stdout.write(f"{os.getpriority(os.PRIO_PROCESS, threading.get_native_id())} ")
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
ready.wait()
print("ready", flush=True)
sys.stdin.readline()
told.set()
for thread in threads:
    thread.join()
print(subprocess.check_output([sys.executable, "-c", "import os; print(os.nice(0))"], text=True))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="threads have no priority")
@pytest.mark.parametrize("is_apart", [False, True])
def test_the_priority_of_all_threads_is_lowered(is_apart: bool) -> None:
    """A session that has other programs too keeps its niceness."""
    before, before_session = os.nice(0), session_niceness(os.getpid())
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        start_new_session=is_apart,
    ) as process:  # fmt: skip
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        lower_priority(process.pid, NICENESS)
        if before_session is not None:
            nice = NICENESS if is_apart else before_session
            assert session_niceness(process.pid) == nice
        found, _ = process.communicate("go on\n")
    assert found.split() == [str(NICENESS)] * 3
    assert os.nice(0) == before
    assert session_niceness(os.getpid()) == before_session


def session_niceness(pid: int) -> int | None:
    """Returns what Linux compares sessions by; None where it does not."""
    group = Path(f"/proc/{pid}/autogroup")
    said = group.read_text().split() if group.exists() else []
    return int(said[-1]) if said else None
