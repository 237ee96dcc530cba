"""The limits of worker processes."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """The number of worker processes, and the limits of one call."""

    processes: int = 2
    cpu_s: int = 5
    """Processor time of a call."""
    memory_bytes: int = 256 * MIB
    """Address space of a process, with the interpreter's 30 MB. macOS has no such limit; there the
    size of requests and the time limit it."""
    wall_s: float = 30.0
    """Time from request to reply; longer than `cpu_s`, because the machine may be busy."""
    max_request_bytes: int = 32 * MIB
    max_reply_bytes: int = 32 * MIB
