"""The streams of RabbitMQ: where each begins and ends, and its messages as chunks.

AMQP 0-9-1 does not tell the offsets of a stream; the messages that it delivers do. So the first and
the last message are asked for. Nor does it tell a stream from a later one of the same name: each is
bound to the exchange `hub.streams`, to which nothing is published, with a random key, and such a
binding is deleted with its queue.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from ....core.errors import ChannelError
from ...requests import Kind
from ..errors import EngineUnavailable, NotOnThisEngine
from ..port import (
    BindingSpec,
    ReadMessages,
    StreamArchives,
    StreamRead,
    StreamState,
)
from .connections import Connections
from .encoding import StreamMessage
from .management import Management
from .stream_chunks import ChunkWriter
from .stream_follower import AmqpStreamFollower
from .stream_reader import ANSWER_S, AmqpStreamReader, reading
from .topology import STREAMS

EMPTY_S: Final = 1.0
"""A stream that sends nothing for so long, and for which RabbitMQ counts no messages, is empty."""
FIRST_S: Final = 10.0
"""How long the first offset is believed; a read that comes too late for it notices."""
END_S: Final = 1.0
"""How long the end of a stream is sought that grows meanwhile."""
END_PREFETCH: Final = 100
AT_ONCE: Final = 100
ENVELOPE_BYTES: Final = 200
"""Of a message beside its body, about."""
PREFETCH: Final = 2_000
PREFETCH_BYTES: Final = 4 * 1024 * 1024
SAMPLE_BYTES: Final = 64 * 1024
_ID_BITS: Final = 62
_NOT_FOUND: Final = 404


@dataclass(slots=True)
class KnownStream:
    """What is known of a stream from earlier reads."""

    incarnation: str
    first: int = 0
    first_until_s: float = 0.0
    next_offset: int = 0
    message_bytes: int = PREFETCH_BYTES // 20
    """Roughly, by those that were read last."""

    @property
    def id(self) -> int:
        return int(self.incarnation[:16], 16) >> (64 - _ID_BITS)

    def prefetch(self, count: int) -> int:
        """Returns how many of so many messages may be on their way."""
        return max(2, min(count, PREFETCH, PREFETCH_BYTES // max(1, self.message_bytes)))

    def measure(self, messages: Sequence[StreamMessage]) -> None:
        size = sum(len(one.message.body) + ENVELOPE_BYTES for one in messages)
        self.message_bytes = size // len(messages)


class AmqpStreams:
    """Finds streams. `prepare` declares the exchange, `bind` makes a binding."""

    def __init__(
        self,
        connections: Connections,
        management: Management,
        prepare: Callable[[str], Awaitable[None]],
        bind: Callable[[str, BindingSpec], Awaitable[None]],
    ) -> None:
        self._connections = connections
        self._management = management
        self._prepare = prepare
        self._bind = bind
        self._known: dict[tuple[str, str], KnownStream] = {}

    async def find(self, vhost: str, kind: Kind, name: str) -> AmqpStream | None:
        """Returns a stream queue as it is now; exchanges keep no messages here."""
        if kind != "q" or not name:
            return None
        found = await self._management.get("queues", vhost, name, columns="type,messages")
        if found is None or found.get("type") != "stream":
            self._known.pop((vhost, name), None)
            return None
        incarnation = await self.incarnation(vhost, name)
        if incarnation is None:
            return None
        known = self._known.get((vhost, name))
        if known is None or known.incarnation != incarnation:
            known = self._known[vhost, name] = KnownStream(incarnation)
        stream = AmqpStream(self, self._connections, vhost, name, known)
        await stream.refresh(int(found.get("messages") or 0))
        return stream

    async def captures(self, vhost: str) -> AsyncIterator[BindingSpec]:
        """Yields the bindings of streams, without those that identify them."""
        for one in await self._management.list("queues", vhost, columns="name,type"):
            if one.get("type") == "stream":
                name = one["name"]
                found = await self._management.get("queues", vhost, name, "bindings") or ()
                for binding in found:
                    if binding["source"] not in ("", STREAMS.name):
                        key = binding["routing_key"]
                        yield BindingSpec(binding["source"], name, routing_key=key)

    async def incarnation(self, vhost: str, name: str) -> str | None:
        """Returns the key of the stream's binding, which is made unless it is there; None if the
        stream was deleted."""
        found = await self._incarnations(vhost, name)
        if found == []:
            await self._prepare(vhost)
            key = secrets.token_hex(16)
            await self._bind(vhost, BindingSpec(STREAMS.name, name, routing_key=key))
            found = await self._incarnations(vhost, name)
        return min(found) if found else None  # another hub may have made one at the same time

    async def _incarnations(self, vhost: str, name: str) -> Sequence[str] | None:
        found = await self._management.get("queues", vhost, name, "bindings")
        if found is None:
            return None
        return [one["routing_key"] for one in found if one["source"] == STREAMS.name]


class AmqpStream:
    """Implements `Stream`, as the stream was at `refresh`."""

    def __init__(
        self,
        streams: AmqpStreams,
        connections: Connections,
        vhost: str,
        name: str,
        known: KnownStream,
    ) -> None:
        self._streams = streams
        self._connections = connections
        self._place = vhost, name
        self._known = known
        self._is_deleted = False

    async def refresh(self, count: int) -> None:
        """Reads the offsets; `count` is how many messages RabbitMQ has counted lately. Raises
        `EngineUnavailable`."""
        try:
            await self._read_end(count)
            if time.monotonic() >= self._known.first_until_s:
                await self._read_first()
        except ChannelError as error:
            if error.code != _NOT_FOUND:
                raise
            self._is_deleted = True

    async def _read_end(self, count: int) -> None:
        """Reads the last chunk to its end, which the next one may follow."""
        known, until_s = self._known, time.monotonic() + END_S
        async with self._reading("last", END_PREFETCH) as reader:
            some = await reader.some_within(1, ANSWER_S if count else EMPTY_S)
            if not some and count:
                raise EngineUnavailable(f"{self} does not answer")
            while some and time.monotonic() < until_s:
                known.next_offset = max(known.next_offset, some[-1].offset + 1)
                known.measure(some)
                some = await reader.all_sent()

    async def _read_first(self) -> None:
        known = self._known
        known.first = known.next_offset
        if known.next_offset:
            async with self._reading("first", 2) as reader:
                for one in await reader.some_within(1, ANSWER_S):
                    known.first = min(one.offset, known.next_offset)
        known.first_until_s = time.monotonic() + FIRST_S

    def _reading(
        self, at: int | str | datetime, prefetch: int
    ) -> AbstractAsyncContextManager[AmqpStreamReader]:
        return reading(self._connections, *self._place, at, prefetch)

    def state(self) -> StreamState | None:
        if self._is_deleted:
            return None
        known = self._known
        return StreamState(known.first, known.next_offset, known.incarnation, None, known.id)

    async def chunks(
        self, start: int, end: int, limit_bytes: int, *, skip_damaged: bool
    ) -> StreamRead | None:
        known = self._known
        end = min(end, known.next_offset)
        writer = ChunkWriter(known.id, start, limit_bytes)
        try:
            async with self._reading(start, known.prefetch(end - start)) as reader:
                await self._fill(writer, reader, end)
        except ChannelError as error:
            if error.code != _NOT_FOUND:
                raise
            self._is_deleted = True
            return None
        if await self._streams.incarnation(*self._place) != known.incarnation:
            self._is_deleted = True
            return None
        if writer.is_empty:
            return None  # `first` is behind it now
        return writer.read()

    async def _fill(self, writer: ChunkWriter, reader: AmqpStreamReader, end: int) -> None:
        """Adds messages until the chunks are full, or to the first one that is missing."""
        while writer.next_offset < end:
            some = await reader.some_within(AT_ONCE, ANSWER_S)
            if not some:
                raise EngineUnavailable(f"{self} does not send message {writer.next_offset}")
            self._known.measure(some)
            for one in some:
                if one.offset > writer.next_offset and writer.is_empty:
                    self._known.first = one.offset
                if one.offset < writer.next_offset:
                    continue
                if one.offset > writer.next_offset or one.offset == end or not writer.add(one):
                    return

    async def measure(self, start: int, limit_bytes: int) -> int | None:
        """Estimates it by the sizes of the first messages from there on."""
        read = await self.chunks(
            start, self._known.next_offset, min(limit_bytes, SAMPLE_BYTES), skip_damaged=False
        )
        if read is None:
            return None
        count = read.next_offset - start
        return min(self._known.next_offset, start + max(1, limit_bytes * count // read.size_bytes))

    async def find_moment(self, wall_ms: int) -> int:
        """Finds it to the second, by the times that RabbitMQ has for chunks."""
        moment = datetime.fromtimestamp(wall_ms // 1000, UTC)
        end = self._known.next_offset
        if self._is_deleted or not end or wall_ms / 1000 > time.time() + 1:
            return end
        async with self._reading(moment, 2) as reader:
            found = await reader.all_there()
        return found[0].offset if found else end

    def follow(
        self,
        start: int,
        keys: Sequence[str],
        *,
        on_messages: Callable[[Sequence[int], ReadMessages], None],
        on_gap: Callable[[int, int], None],
        on_end: Callable[[Exception | None], None],
    ) -> AmqpStreamFollower:
        prefetch = self._known.prefetch(PREFETCH)
        return AmqpStreamFollower(
            self._connections, self._place, self._known.incarnation, start, prefetch,
            on_messages, on_gap, on_end,
        )  # fmt: skip

    def archives(self) -> StreamArchives:
        return StreamArchives({}, None, None)

    async def report_archive(self, archive: str, offset: int, manifest: str) -> bool:
        raise NotOnThisEngine(
            "retention that waits for an archive", instead="its retention is by age and size alone"
        )

    async def forget_archive(self, archive: str) -> bool:
        raise NotOnThisEngine("an archive of a stream", instead="there is none to forget")

    def __str__(self) -> str:
        return f"stream '{self._place[1]}' in vhost '{self._place[0]}'"
