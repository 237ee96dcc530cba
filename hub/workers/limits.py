"""What one piece of work may take, and how many pieces run at a time."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    processes: int = 2
    cpu_s: int = 5
    """Of the processor, for one piece of work."""
    memory_bytes: int = 256 * MIB
    """Address space of a process, the interpreter's 30 MB included. macOS knows no such limit;
    there the size of requests and the time are what bounds it."""
    wall_s: float = 30.0
    """From request to reply; more than `cpu_s`, for the machine may have other things to do."""
    max_request_bytes: int = 32 * MIB
    max_reply_bytes: int = 32 * MIB
