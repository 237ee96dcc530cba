"""The input of a connection that was read and has to wait before it is handled.

An alarm stops reading at a publish; a method's reply waits for the disk or for sliced work; a
message waits for memory. The socket is not read meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ..busy_names import Callback, Wait
from ..wire.frames import method_frame, short_string
from ..wire.method_ids import CONNECTION_BLOCKED, CONNECTION_UNBLOCKED

if TYPE_CHECKING:
    from ..broker import Broker
    from .output import ConnectionOutput

logger = logging.getLogger(__name__)

READ_MS: Final = 5
"""How long one read may be worked on before other connections have their turn. A read can hold
14,000 small methods, half a second of work."""
_OUT_MAX_BYTES: Final = 524_288
"""Unsent output of a connection above which no more of its methods are handled."""


class PendingInput:
    """The unhandled input of one connection."""

    __slots__ = (
        "_broker", "_output", "awaits_memory", "awaits_reply", "blocked", "notifies_client", "tail",
        "unfinished",
    )  # fmt: skip

    def __init__(self, broker: Broker, output: ConnectionOutput) -> None:
        self._broker = broker
        self._output = output
        self.tail = b""
        """The rest of what was read."""
        self.unfinished = False
        """The tail has whole frames: call `Connection.receive(b"")` in a later turn."""
        self.notifies_client = False
        """Whether the client understands connection.blocked."""
        self.blocked = False
        """Stopped at a publish by a memory or disk alarm."""
        self.awaits_reply = False
        """Whether a method's reply waits for the disk or for sliced work. Later methods are not
        handled before it: they could take the message that a basic.get waits for, or their
        replies could overtake."""
        self.awaits_memory = False
        """A message waits for memory until other incomplete ones of its user are complete."""

    @property
    def is_stopped(self) -> bool:
        """Whether reading waits until `Transport.unblocked` is called."""
        return self.blocked or self.awaits_reply or self.awaits_memory

    @property
    def must_yield(self) -> bool:
        """Whether the rest of a read has to wait for a later turn: 5 ms were spent on it, or the
        client does not read its replies. Checked before each step slower than the batch path."""
        output = self._output
        if output.pending_bytes + output.waiting_reply_bytes > _OUT_MAX_BYTES:
            return True
        if not output.socket_writable:
            return True
        return self._broker.clock.now_ms() - self._broker.now_ms >= READ_MS

    def block(self, name: str, unacked_count: int) -> None:
        """Stops at a publish because of an alarm; later frames wait, acks too.

        `name` and `unacked_count` are the connection's, for the log.
        """
        if self.blocked:
            return
        self.blocked = True
        alarms = self._broker.alarms
        alarms.block(self)
        logger.log(
            logging.WARNING if unacked_count else logging.INFO,
            "connection %s: blocked, %s: reading stops at its publish, so the acks of its %d "
            "unacked messages wait too",
            name,
            alarms.reason,
            unacked_count,
        )
        if self.notifies_client:
            self._output.write(method_frame(0, CONNECTION_BLOCKED, short_string(alarms.reason)))

    def unblock(self) -> None:
        """Goes on after an alarm, and sends connection.unblocked if the client understands it."""
        if self.notifies_client:
            self._output.write(method_frame(0, CONNECTION_UNBLOCKED))
        self._go_on()

    def wait_for(self, steps: Iterator[None]) -> None:
        """Starts sliced work; later methods of the client wait for its last step."""

        def work(done: Callback) -> Iterator[None]:
            try:
                yield from steps
            finally:
                done()

        self.wait_until(lambda done: self._broker.slices.start(work(done)))

    def wait_until(self, wait: Wait, action: Callback = lambda: None) -> None:
        """Runs `action` when `wait` calls back; later methods of the client wait for that."""
        is_over = False

        def done() -> None:
            nonlocal is_over
            is_over = True
            action()
            self.replied()

        wait(done)
        self.awaits_reply = not is_over

    def replied(self) -> None:
        """Goes on with the methods behind one whose reply had to wait."""
        if self.awaits_reply:
            self._go_on()

    def memory_freed(self) -> None:
        """Goes on with a message that waited for memory."""
        if self.awaits_memory:
            self._go_on()

    def end_waiting(self) -> None:
        """Goes on after an error: from now on frames are only searched for close and close-ok."""
        if self.is_stopped:
            self._broker.alarms.forget(self)
            self._go_on()

    def _go_on(self) -> None:
        self.blocked = self.awaits_reply = self.awaits_memory = False
        self.unfinished = bool(self.tail)
        self._output.transport.unblocked()

    def drop(self) -> None:
        """Discards the rest of the input."""
        self.tail = b""
        self.unfinished = False
