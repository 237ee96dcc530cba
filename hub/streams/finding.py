"""Finds streams by name, and checks offsets in them."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from ..engine.port import Engine, Stream, StreamState
from ..requests import Kind
from .errors import NotAStream, OffsetAhead, StreamAgedOut, StreamMissing, StreamRecreated

Source = Literal["queue", "exchange"]
_KINDS: Final[dict[Source, Kind]] = {"queue": "q", "exchange": "x"}


class FoundStream(NamedTuple):
    """A stream by its name: a queue, or what an exchange keeps."""

    vhost: str
    name: str
    source: Source
    stream: Stream

    def __str__(self) -> str:
        return f"stream '{self.name}' in vhost '{self.vhost}'"

    def state(self) -> StreamState:
        """Returns the state of the stream; raises `StreamMissing` if it was deleted."""
        state = self.stream.state()
        if state is None:
            raise _missing(self.vhost, self.name, self.source)
        return state


async def find(engine: Engine, vhost: str, name: str, source: Source | None) -> FoundStream:
    """Returns the stream queue of this name, or else the exchange that keeps messages; only one
    of them with `source`. Raises `StreamMissing` or `NotAStream`."""
    sources: tuple[Source, ...] = ("queue", "exchange") if source is None else (source,)
    for one in sources:
        stream = await engine.stream(vhost, _KINDS[one], name)
        if stream is not None:
            return FoundStream(vhost, name, one, stream)
    raise await _not_a_stream(engine, vhost, name, sources)


async def _not_a_stream(
    engine: Engine, vhost: str, name: str, sources: tuple[Source, ...]
) -> NotAStream | StreamMissing:
    """Returns the error for a name that is not that of a stream."""
    queue = await engine.queue(vhost, name) if "queue" in sources else None
    if queue is not None:
        kind = queue.spec.arguments.get("x-queue-type", "classic")
        reason = (
            f"queue '{name}' in vhost '{vhost}' is of type {kind!s}, not stream: bind a queue "
            f"of type stream to the same exchange and read that one (warren pipeline capture)"
        )
        return NotAStream(reason, field="name", value=name)
    exchange = await engine.exchange(vhost, name) if "exchange" in sources else None
    if exchange is None:
        return _missing(vhost, name, " or ".join(sources))
    reason = (
        f"exchange '{name}' in vhost '{vhost}' keeps no messages on disk: it is not durable, "
        f"or has no x-persist-messages; bind a queue of type stream to it and read that one "
        f"(warren pipeline capture)"
    )
    return NotAStream(reason, field="name", value=name)


def check(found: FoundStream, start: int, incarnation: str | None) -> StreamState:
    """Returns the state of a stream that has the offset, or ends there.

    Raises `StreamMissing`, `StreamRecreated`, `StreamAgedOut` or `OffsetAhead`.
    """
    state = found.state()
    stream = f"stream '{found.name}' in vhost '{found.vhost}'"
    if incarnation is not None and incarnation != state.incarnation:
        raise StreamRecreated(
            f"{stream} is incarnation {state.incarnation}, not {incarnation}: it was deleted and "
            "declared again, so its offsets are those of other messages; restart from the "
            "beginning",
            field="incarnation", value=incarnation, limit=state.incarnation,
            members={"incarnation": state.incarnation},
        )  # fmt: skip
    offsets: dict[str, int | str] = {"first": state.first, "next": state.next_offset}
    if start < state.first:
        raise StreamAgedOut(
            f"{stream} begins at offset {state.first}, {start} was dropped by its retention",
            field="start", value=str(start), limit=str(state.first), members=offsets,
        )  # fmt: skip
    if start > state.next_offset:
        raise OffsetAhead(
            f"{stream} ends at offset {state.next_offset}, {start} is past it",
            field="start", value=str(start), limit=str(state.next_offset), members=offsets,
        )  # fmt: skip
    return state


def _missing(vhost: str, name: str, sought: str) -> StreamMissing:
    reason = f"there is no {sought} '{name}' in vhost '{vhost}'"
    return StreamMissing(reason, field="name", value=name)
