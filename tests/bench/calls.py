"""Counts system calls of a running process, with perf or, where it may not, with strace."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .client import BenchError

EVENTS = (
    "raw_syscalls:sys_enter",
    "syscalls:sys_enter_fsync",
    "syscalls:sys_enter_fdatasync",
)
SYNCS = ("fsync", "fdatasync")
END_TIMEOUT_S = 30.0
STRACE_ATTACHED = b"attached"


class CountingError(BenchError):
    """No tool may count here; the text says why."""


@dataclass
class Calls:
    """Filled in when the counting ends. `slows` tells that each call was stopped to count it."""

    total: int = 0
    syncs: int = 0
    slows: bool = False


def parse_perf(text: str) -> tuple[int, int]:
    """All calls and the syncs among them, from `perf stat -x,`."""
    counts: dict[str, int] = {}
    for line in text.splitlines():
        fields = line.split(",")
        if len(fields) > 2 and fields[2] in EVENTS:
            if not fields[0].isdigit():
                raise CountingError(f"perf says {fields[0]!r} for {fields[2]}")
            counts[fields[2]] = int(fields[0])
    if len(counts) != len(EVENTS):
        raise CountingError(f"perf counted only {', '.join(counts) or 'nothing'}: {text[:300]}")
    return counts[EVENTS[0]], sum(counts[event] for event in EVENTS[1:])


def parse_strace(text: str) -> tuple[int, int]:
    """All calls and the syncs among them, from the table of `strace -c`."""
    counts: dict[str, int] = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 5 and fields[3].isdigit():
            counts[fields[-1]] = int(fields[3])
    if "total" not in counts:
        raise CountingError(f"strace gave no table: {text[:300]}")
    return counts["total"], sum(counts.get(name, 0) for name in SYNCS)


class _Counter(ABC):
    """One of the tools, attached to processes that run."""

    name: str
    slows: bool

    def __init__(self, directory: Path, pids: list[int]) -> None:
        self.output = directory / self.name
        self.process = self._attach(directory, pids)

    @abstractmethod
    def _attach(self, directory: Path, pids: list[int]) -> subprocess.Popen[bytes]:
        """Returns when counting has begun; raises `CountingError` when it can't."""

    @abstractmethod
    def parse(self, text: str) -> tuple[int, int]:
        """All calls and the syncs among them."""

    def end(self) -> tuple[int, int]:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(END_TIMEOUT_S)
        return self.parse(self.output.read_text())


class _Perf(_Counter):
    name, slows = "perf", False

    def _attach(self, directory: Path, pids: list[int]) -> subprocess.Popen[bytes]:
        control, answer = directory / "control", directory / "answer"
        os.mkfifo(control)
        os.mkfifo(answer)
        handles = [os.open(path, os.O_RDWR) for path in (control, answer)]
        try:
            command = ["perf", "stat", "-x,", "-o", str(self.output), "-D", "-1"]
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

    def parse(self, text: str) -> tuple[int, int]:
        return parse_perf(text)


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


class _Strace(_Counter):
    name, slows = "strace", True

    def _attach(self, directory: Path, pids: list[int]) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            ["strace", "-c", "-f", "-o", str(self.output), *(f"-p{pid}" for pid in pids)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        assert process.stderr is not None
        said = process.stderr.readline()
        if STRACE_ATTACHED not in said:
            process.wait(END_TIMEOUT_S)
            raise CountingError(f"strace ended: {said.decode(errors='replace')[:300]}")
        return process

    def parse(self, text: str) -> tuple[int, int]:
        return parse_strace(text)


def _attach(directory: Path, pids: list[int]) -> _Counter:
    reasons = []
    for tool in (_Perf, _Strace):
        if shutil.which(tool.name) is None:
            reasons.append(f"{tool.name} is not installed")
            continue
        try:
            return tool(directory, pids)
        except CountingError as error:
            reasons.append(str(error))
    raise CountingError(f"system calls can't be counted here: {'; '.join(reasons)}")


@contextlib.contextmanager
def counting(pids: list[int]) -> Iterator[Calls]:
    """Counts between entry and exit; raises `CountingError` when no tool may."""
    calls = Calls()
    with tempfile.TemporaryDirectory(prefix="warren-bench-") as directory:
        counter = _attach(Path(directory), pids)
        calls.slows = counter.slows
        try:
            yield calls
        finally:
            calls.total, calls.syncs = counter.end()
