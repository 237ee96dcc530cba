"""Opens live subscriptions, keeps their connections alive, and bounds the memory that they take."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from ..engine.port import Engine, ExchangeSpec
from ..errors import BadRequest, SourceMissing
from ..keyed_locks import KeyedLocks
from ..requests import Kind, Resource
from ..tasks import Tasks
from .broadcast import Broadcast
from .cursors import ResumeCursor, moment_ms
from .encoding import MessageEncoder
from .forms import Form
from .queue_reading import PREFETCH_MAX, AutoAcked, ManuallyAcked
from .reader import LivePermit, LiveReader, LiveSource, Sink
from .reasons import Reason
from .recent import RecentBytes
from .shared_encoding import SharedEncoding
from .silent import NoSource
from .stored_reading import WORDS, StoredReading

BEAT_S: Final = 15
"""How often a quiet connection gets a sign of life (HTML 9.2.7 advises 15 s)."""
STALLED_S: Final = 60
UNSENT_BYTES: Final = 64 * 1024 * 1024
"""The limit for all readers together that don't keep up."""
IDLE_MAX: Final = 1_000
"""Broadcasts that stay without a reader, so that nobody makes queues by coming and going."""
AT_ONCE: Final = 500
"""Readers that are looked at between two rounds of the loop."""
_EVERYTHING: Final = {"topic": "#", "x-consistent-hash": "1"}
"""The key with which an exchange routes all messages; "" for all other types but direct."""

log = logging.getLogger(__name__)
BroadcastKey = tuple[Resource, tuple[str, ...]]


class Live:
    """All live subscriptions. `message_id` makes ids of sequence numbers."""

    def __init__(self, engine: Engine, message_id: Callable[[int], str], tasks: Tasks) -> None:
        self._engine = engine
        self._message_id = message_id
        self._has_key = False
        """Whether the key of the ids is in memory."""
        self._tasks = tasks
        self._broadcasts: dict[BroadcastKey, Broadcast] = {}
        self._opening: KeyedLocks[BroadcastKey] = KeyedLocks()
        self._kept = RecentBytes()
        self._encoding = SharedEncoding(MessageEncoder(message_id))
        self._buckets: list[dict[LiveReader, None]] = [{} for _ in range(BEAT_S)]
        """The readers, by the second in which they get a sign of life."""
        self._entered = 0
        self._is_counting = False
        """Whether what is unsent will be counted soon."""
        self._full: dict[LiveReader, None] = {}
        """Readers that don't keep up, those that began first in front."""
        self._closing: list[Sink] = []
        """Connections of readers that have ended while something was unsent."""
        self._to_check: dict[LiveReader, None] = {}
        self._is_checking = False
        self._stopping = False
        engine.watch_deleted(self._deleted)

    def start(self) -> None:
        self._tasks.own(self._beat())

    def stop(self) -> None:
        """Ends all readers, with the reason."""
        self._stopping = True
        for reader in self._all():
            reader.end(Reason.stopping())
        for broadcast in tuple(self._broadcasts.values()):
            broadcast.end(Reason.stopping())

    @property
    def count(self) -> int:
        return sum(map(len, self._buckets))

    async def open(
        self,
        source: Resource,
        keys: Sequence[str],
        form: Form,
        permit: LivePermit,
        cursor: str = "",
        *,
        prefetch: int | None = None,
    ) -> LiveReader:
        """Returns a reader of a source; its `begin` follows soon. With `prefetch` the messages
        of a queue are settled by `ManuallyAcked.settle`.

        Raises `SourceMissing`, `BadRequest`, and `ChannelError`.
        """
        if not self._has_key:
            await asyncio.to_thread(self._message_id, 0)  # It may have to be made.
            self._has_key = True
        cursor = await self._resolved(source, cursor)
        found = await self._source(source, keys, cursor, prefetch)
        return LiveReader(self, found, form, permit, cursor)

    def open_silent(self, form: Form, permit: LivePermit) -> LiveReader:
        """Returns a reader that is sent no messages, for a connection that only publishes."""
        return LiveReader(self, NoSource(), form, permit, "")

    async def _resolved(self, source: Resource, cursor: str) -> str:
        """Returns the cursor; for a time, that of the first message that arrived then or later."""
        wall_ms = moment_ms(cursor)
        if wall_ms is None:
            return cursor
        stream = await self._engine.stream(source.vhost, source.kind, source.name)
        if stream is None:
            return cursor
        return str(await stream.find_moment(wall_ms))

    async def _source(
        self, source: Resource, keys: Sequence[str], cursor: str, prefetch: int | None
    ) -> LiveSource:
        stream = await self._engine.stream(source.vhost, source.kind, source.name)
        if prefetch is not None and (stream is not None or source.kind == "x"):
            raise BadRequest(
                "is not supported for streams and exchanges", field="ack", value="manual"
            )
        if stream is not None:
            if cursor not in WORDS and cursor:
                ResumeCursor.read(cursor)
            return StoredReading(stream, source, keys, self._encoding)
        if source.kind == "q":
            return await self._queue(source, cursor, prefetch)
        if cursor:
            ResumeCursor.read(cursor)
        return await self._broadcast(source, keys)

    async def _queue(self, queue: Resource, cursor: str, prefetch: int | None) -> LiveSource:
        if await self._engine.queue(queue.vhost, queue.name) is None:
            raise _missing(queue)
        if cursor:
            raise BadRequest(
                f"can't be used: {queue} gives each message once", field="cursor", value=cursor
            )
        encoder = MessageEncoder(self._message_id)
        if prefetch is None:
            return AutoAcked(self._engine, queue, encoder, self._tasks)
        if not 1 <= prefetch <= PREFETCH_MAX:
            raise BadRequest(
                "is out of range",
                field="prefetch",
                value=str(prefetch),
                limit=f"1 to {PREFETCH_MAX}",
            )
        return ManuallyAcked(self._engine, queue, encoder, self._tasks, prefetch)

    async def keys_of(self, source: Resource, keys: Sequence[str]) -> tuple[str, ...]:
        """Returns the keys to bind with: those given, or the one for everything; none for a queue.

        Raises `SourceMissing`, and `BadRequest` for a direct exchange without a key, a queue with
        one, and an exchange that would give the reader what others are to get.
        """
        if source.kind == "q":
            if keys:
                raise BadRequest(f"is for exchanges: {source} has none", field="key", value=keys[0])
            return ()
        spec = await self._engine.exchange(source.vhost, source.name)
        if spec is None:
            raise _missing(source)
        type_name = _type(spec)
        is_stored = await self._engine.stream(source.vhost, "x", source.name) is not None
        if not is_stored and await self._engine.distributes(source.vhost, source.name):
            raise BadRequest(
                f"can't be read: {type_name} gives each message to one binding, so the reader "
                "would take messages from others; read a queue that is bound to it",
                field="source",
                value=source.name,
            )
        if keys:
            return tuple(dict.fromkeys(keys))
        if type_name == "direct":
            raise BadRequest(
                f"is needed, since {source} is of type direct: give one or more ?key=KEY",
                field="key",
            )
        return (_EVERYTHING.get(type_name, ""),)

    async def _broadcast(self, exchange: Resource, keys: Sequence[str]) -> LiveSource:
        key = exchange, tuple(sorted(keys))
        async with self._opening.of(key):
            broadcast = self._broadcasts.get(key)
            if broadcast is None:
                self._end_idle()
                encoder = MessageEncoder(self._message_id)

                def ended() -> None:
                    self._broadcasts.pop(key, None)

                broadcast = Broadcast(self._engine, exchange, key[1], encoder, self._kept, ended)
                await broadcast.start()
                self._broadcasts[key] = broadcast
            broadcast.stay()
            return broadcast

    def _end_idle(self) -> None:
        """Ends the oldest broadcast without a reader if there are too many of these."""
        if len(self._broadcasts) < IDLE_MAX:
            return
        idle = [one for one in self._broadcasts.values() if one.is_idle]
        if len(idle) >= IDLE_MAX:
            idle[0].end(Reason.stopping())

    def _deleted(self, vhost: str, kind: Kind, name: str) -> Iterator[None]:
        """Ends the broadcasts of a deleted exchange."""
        if kind == "q":
            return  # Reply queues are deleted by the thousand.
        gone = Resource(vhost, kind, name)
        for (exchange, _), broadcast in tuple(self._broadcasts.items()):
            if exchange == gone:
                broadcast.end(Reason.deleted(gone))
                yield

    # -- the registry of readers

    def enter(self, reader: LiveReader) -> None:
        self._entered += 1
        reader.bucket = self._entered % BEAT_S
        self._buckets[reader.bucket][reader] = None
        if self._stopping:
            reader.end(Reason.stopping())

    def leave(self, reader: LiveReader, sink: Sink) -> None:
        if sink.unsent_bytes:
            self._closing.append(sink)
        del self._buckets[reader.bucket][reader]
        self._full.pop(reader, None)
        self._to_check.pop(reader, None)
        if not self.count:
            self._encoding.clear()

    def _all(self) -> list[LiveReader]:
        return [reader for bucket in self._buckets for reader in bucket]

    def check_soon(self, reader: LiveReader) -> None:
        """Checks the reader's permit again, a few readers at a time: a change of one user may
        concern thousands."""
        if not self._is_checking:
            self._is_checking = True
            asyncio.get_running_loop().call_soon(self._check_some)
        self._to_check[reader] = None

    def _check_some(self) -> None:
        for reader in list(self._to_check)[:AT_ONCE]:
            self._to_check.pop(reader, None)
            refusal = reader.permit.refusal()
            if refusal is not None:
                reader.end(refusal)
        self._is_checking = bool(self._to_check)
        if self._is_checking:
            asyncio.get_running_loop().call_soon(self._check_some)

    # -- readers that don't keep up

    def note_full(self, reader: LiveReader) -> None:
        if not self._is_counting:
            self._is_counting = True
            asyncio.get_running_loop().call_soon(self._drop_slowest)
        self._full[reader] = None

    def _drop_slowest(self) -> None:
        """Drops readers until the bound holds, first those that have ended. Once for all that
        became full in a round: for each of them to count all others would take a second."""
        self._is_counting = False
        self._forget_closed()
        unsent = [(one.unsent_bytes, one.abort) for one in self._closing]
        unsent += [(one.sink.unsent_bytes, one.drop) for one in self._full if one.sink is not None]
        excess_bytes = sum(size for size, _ in unsent) - UNSENT_BYTES
        for size, drop in unsent:
            if excess_bytes <= 0:
                break
            drop()
            excess_bytes -= size

    def _forget_closed(self) -> None:
        self._closing = [sink for sink in self._closing if sink.unsent_bytes]

    def note_drained(self, reader: LiveReader) -> None:
        self._full.pop(reader, None)

    async def _beat(self) -> None:
        while True:
            for bucket in self._buckets:
                await asyncio.sleep(1)
                self._end_stalled()
                self._forget_closed()
                for place, reader in enumerate(tuple(bucket), 1):
                    reader.keep_alive()
                    if place % AT_ONCE == 0:
                        await asyncio.sleep(0)

    def _end_stalled(self) -> None:
        before_s = time.monotonic() - STALLED_S
        for reader in list(self._full):
            if reader.full_since_s > before_s:
                break
            reader.end(Reason.stalled(STALLED_S))


def _missing(source: Resource) -> SourceMissing:
    return SourceMissing(f"there is no {source}", field="source", value=source.name)


def _type(spec: ExchangeSpec) -> str:
    """Returns the type by which an exchange routes."""
    delayed = spec.arguments.get("x-delayed-type")
    return delayed if isinstance(delayed, str) else spec.type
