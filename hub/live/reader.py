"""A reader: writes to its connection, counts what is not sent yet, and ends it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from .forms import ERROR, GAP
from .reasons import Reason

if TYPE_CHECKING:
    from .batch import EncodedBatch
    from .cursors import ResumeCursor
    from .forms import Form

CUT_BYTES: Final = 1024 * 1024
"""Unsent bytes above which a reader gets nothing more of what others read too."""


class Sink(Protocol):
    """The connection of a reader; it calls `LiveReader.full`, `drained` and `lost`."""

    @property
    def unsent_bytes(self) -> int: ...
    def write(self, data: bytes) -> None: ...
    def close(self) -> None:
        """Closes the connection when all that was written is sent."""

    def abort(self) -> None:
        """Closes the connection at once."""


class LiveSource(Protocol):
    """The source of a reader: an exchange, a queue or a stream."""

    def add(self, reader: LiveReader) -> None:
        """Begins to send messages to the reader, from its cursor on."""

    def remove(self, reader: LiveReader) -> None: ...
    def full(self, reader: LiveReader) -> None:
        """The reader does not keep up: it has unsent bytes."""

    def drained(self, reader: LiveReader) -> None: ...
    def position(self, reader: LiveReader) -> str:
        """Returns the cursor of a reader that has got nothing since it asked; empty for a queue."""


class LivePermit(Protocol):
    """The permission of a reader, checked again when the user or the token changes."""

    def refusal(self) -> Reason | None: ...
    def watch(self, changed: Callable[[], None]) -> None: ...
    def unwatch(self, changed: Callable[[], None]) -> None: ...


class LiveReaders(Protocol):
    """The registry of the readers that read."""

    def enter(self, reader: LiveReader) -> None: ...
    def leave(self, reader: LiveReader, sink: Sink) -> None: ...
    def check_soon(self, reader: LiveReader) -> None: ...
    def note_full(self, reader: LiveReader) -> None: ...
    def note_drained(self, reader: LiveReader) -> None: ...


class LiveReader:
    """A reader of one source, from `cursor` on (empty: from now on)."""

    __slots__ = (
        "_readers", "bucket", "cursor", "form", "full_since_s", "is_quiet", "permit", "reached",
        "sink", "source",
    )  # fmt: skip

    def __init__(
        self, readers: LiveReaders, source: LiveSource, form: Form, permit: LivePermit, cursor: str
    ) -> None:
        self._readers = readers
        self.source = source
        self.form = form
        self.permit = permit
        self.cursor = cursor
        self.sink: Sink | None = None
        """None before it begins, and after its end."""
        self.reached = ""
        """The cursor of what it was sent last; empty before that."""
        self.full_since_s = 0.0
        """When it stopped to keep up, 0 while it does."""
        self.is_quiet = False
        """Whether nothing was written since this was set."""
        self.bucket = 0

    def begin(self, sink: Sink) -> None:
        """Begins to write to the connection, whose head was written already."""
        self.sink = sink
        self._readers.enter(self)
        if self.sink is not None:  # The server may be stopping.
            self.permit.watch(self._changed)
            self.source.add(self)

    def _changed(self) -> None:
        self._readers.check_soon(self)

    @property
    def is_full(self) -> bool:
        return self.full_since_s > 0

    def send(self, batch: EncodedBatch) -> None:
        """Writes messages; cuts off a reader with too many unsent bytes."""
        sink = self.sink
        if sink is None:
            return
        if self.full_since_s and sink.unsent_bytes > CUT_BYTES:
            self.end(Reason.slow(sink.unsent_bytes, CUT_BYTES))
            return
        self.is_quiet = False
        if batch.cursors:
            self.reached = batch.cursors[-1]
        sink.write(batch.joined(self.form))

    def gap(self, seen: str, there: ResumeCursor) -> None:
        """Says that messages are missing between a cursor and the first that is there again."""
        if self.sink is not None:
            self.is_quiet = False
            self.reached = str(there)
            document = {"from": seen, "to": there.message}
            self.sink.write(self.form.event(GAP, document, self.reached))

    def position(self) -> str:
        """Returns the cursor at which to go on; empty for a queue."""
        return self.reached or self.source.position(self)

    def keep_alive(self) -> None:
        """Writes something if nothing else was written since the last call."""
        if self.sink is not None and self.is_quiet and not self.full_since_s:
            self.sink.write(self.form.keep_alive)
        self.is_quiet = True

    def end(self, reason: Reason) -> None:
        """Tells the reader why nothing more comes, and closes its connection."""
        sink = self._leave()
        if sink is not None:
            sink.write(self.form.event(ERROR, reason.document()) + self.form.end())
            sink.close()

    def drop(self) -> None:
        """Closes its connection at once; what is unsent is lost."""
        sink = self._leave()
        if sink is not None:
            sink.abort()

    def _leave(self) -> Sink | None:
        sink, self.sink = self.sink, None
        if sink is not None:
            self.permit.unwatch(self._changed)
            self.source.remove(self)
            self._readers.leave(self, sink)
        return sink

    # -- the connection's side

    def full(self) -> None:
        if self.sink is not None:
            self.full_since_s = time.monotonic()
            self._readers.note_full(self)
            self.source.full(self)

    def drained(self) -> None:
        if self.sink is not None:
            self.full_since_s = 0.0
            self._readers.note_drained(self)
            self.source.drained(self)

    def lost(self) -> None:
        self._leave()
