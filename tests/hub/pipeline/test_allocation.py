"""Freed memory stays in the process, so the next batch needs no new pages."""

from __future__ import annotations

import subprocess
import sys

import pytest

MIB = 1024 * 1024
PROGRAM = """
import resource, sys
from pathlib import Path
from warrenmq.hub.pipeline.allocation import keep_freed_memory

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

if sys.argv[1] == "kept":
    keep_freed_memory()
before = resident()
made = [bytearray(8 * 1024 * 1024) for _ in range(8)]
del made
print(resident() - before)
"""


def left_after_64_mib(how: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc is there on Linux")
def test_freed_memory_is_kept_by_the_process() -> None:
    assert left_after_64_mib("given back") < 32 * MIB < left_after_64_mib("kept")
