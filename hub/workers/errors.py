"""What a call of a worker process ends with instead of a result; apart from the processes, which
the functions that run in them need not import."""

from __future__ import annotations

from ...core.errors import WarrenError


class WorkFailed(WarrenError):
    """A call has exceeded a limit, or its process has ended."""


class WorkRefused(WarrenError):
    """A function has refused its payload."""
