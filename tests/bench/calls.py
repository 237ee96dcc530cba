"""Counts the syncs of a running process with perf."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .client import BenchError

EVENTS = ("syscalls:sys_enter_fsync", "syscalls:sys_enter_fdatasync")
END_TIMEOUT_S = 30.0


class CountingError(BenchError):
    """perf can't count here; the text says why."""


@dataclass
class Calls:
    """Filled in when the counting ends."""

    syncs: int = 0


def parse(text: str) -> int:
    """The syncs in the output of `perf stat -x,`."""
    counts: dict[str, int] = {}
    for line in text.splitlines():
        fields = line.split(",")
        if len(fields) > 2 and fields[2] in EVENTS:
            if not fields[0].isdigit():
                raise CountingError(f"perf says {fields[0]!r} for {fields[2]}")
            counts[fields[2]] = int(fields[0])
    if len(counts) != len(EVENTS):
        raise CountingError(f"perf counted only {', '.join(counts) or 'nothing'}: {text[:300]}")
    return sum(counts.values())


def _attach(directory: Path, output: Path, pids: list[int]) -> subprocess.Popen[bytes]:
    """Returns when counting has begun."""
    if shutil.which("perf") is None:
        raise CountingError("syncs can't be counted here: perf is not installed")
    control, answer = directory / "control", directory / "answer"
    os.mkfifo(control)
    os.mkfifo(answer)
    handles = [os.open(path, os.O_RDWR) for path in (control, answer)]
    try:
        command = ["perf", "stat", "-x,", "-o", str(output), "-D", "-1"]
        command += ["--control", f"fifo:{control},{answer}", "-e", ",".join(EVENTS)]
        process = subprocess.Popen(
            [*command, "-p", ",".join(map(str, pids))],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        os.write(handles[0], b"enable\n")
        _wait_answer(process, handles[1])
    finally:
        for handle in handles:
            os.close(handle)
    return process


def _wait_answer(process: subprocess.Popen[bytes], answer: int) -> None:
    """Reads perf's `ack`, or learns that it has ended."""
    os.set_blocking(answer, False)
    while True:
        with contextlib.suppress(BlockingIOError):
            os.read(answer, 16)
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.01)
            assert process.stderr is not None
            raise CountingError(
                f"perf ended: {process.stderr.read().decode(errors='replace')[:300]}"
            )


@contextlib.contextmanager
def counting(pids: list[int]) -> Iterator[Calls]:
    """Counts between entry and exit; raises `CountingError` where perf can't."""
    calls = Calls()
    with tempfile.TemporaryDirectory(prefix="warren-bench-") as directory:
        output = Path(directory) / "perf"
        process = _attach(Path(directory), output, pids)
        try:
            yield calls
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(END_TIMEOUT_S)
            calls.syncs = parse(output.read_text())
