"""What readers of a stream are shown of its messages: each with its offset.

Readers at the end of a stream get the same messages, so the dressed form of a run is kept for a
while. What waits for an ack has no bytes at all: an ack is credit, and nothing comes again.
"""

from __future__ import annotations

from ..block import Block, Ledger, Run, Span
from .dressing import dressed

RUNS_MAX = 8
_WHOLE = 4
"""A run is dressed as a whole for who can take this part of it at a time. Who can't gets what he
takes and no more: there may be more such readers, at more places, than runs are kept."""


class Receipt(Block):
    """Stands for the messages of a block that were delivered: their numbers, and nothing else."""

    __slots__ = ()

    def __init__(self, block: Block) -> None:
        super().__init__(b"", block.sequence, block.count, block.traits, block.arrived_ms)
        self.resident = False

    @property
    def size_bytes(self) -> int:
        return 0

    def body_bytes(self, index: int) -> int:
        return 0

    def _bytes(self, index: int) -> bytes:
        raise AssertionError("what was delivered by a stream is not looked at any more")

    envelope = properties = body = _bytes


def receipt(span: Span) -> Span:
    """What the session gets to acknowledge."""
    run = span.run
    return Span(Run(Receipt(run.block), run.selection), span.low, span.high)


class Showing:
    """Dresses messages with their offsets under the name `header`."""

    def __init__(self, header: bytes, memory: Ledger) -> None:
        self._header = header
        self._memory = memory
        self._dressed: dict[Run, Run] = {}

    def shown(self, span: Span, offset: int, prefetch: int) -> Span:
        """The span, whose first message has that offset, for a consumer with that prefetch."""
        run = span.run
        whole = self._dressed.get(run)
        if whole is None:
            if prefetch * _WHOLE < run.count:
                return dressed(span, self._header, range(offset, offset + span.count))
            whole = self._dress(run, offset - span.low)
        return Span(whole, span.low, span.high)

    def _dress(self, run: Run, first: int) -> Run:
        found = dressed(Span(run, 0, run.count), self._header, range(first, first + run.count)).run
        found.block.charge(self._memory)
        if len(self._dressed) >= RUNS_MAX:
            self._dressed.clear()
        self._dressed[run] = found
        return found

    def let_go(self) -> None:
        self._dressed.clear()
