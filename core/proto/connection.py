"""The protocol state of one AMQP connection, without a socket.

`receive` takes the bytes that were read; `write` buffers output until the broker's turn ends.
Publishes and acks are recognised in the bytes (the fast path) where possible. With `fast=False`
every frame is decoded by itself (the slow path); both paths give the same answers.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from enum import Enum, auto
from typing import TYPE_CHECKING

from ..auth import User
from ..busy_names import Callback, NameBusy, Wait
from ..errors import ChannelError, ConnectionFault, ProtocolError
from ..queue.queue import OWNER_GONE
from ..slices import for_each
from ..wire.frames import (
    ACK,
    ACK_FRAME_BYTES,
    BODY,
    END,
    FRAME_OVERHEAD_BYTES,
    HEAD_BYTES,
    HEADER,
    HEARTBEAT,
    METHOD,
    PUBLISH,
    method_frame,
    short_string,
)
from ..wire.method_ids import (
    BASIC_ACK,
    BASIC_PUBLISH,
    CHANNEL_CLOSE,
    CHANNEL_CLOSE_OK,
    CHANNEL_OPEN,
    CHANNEL_OPEN_OK,
    CONNECTION_BLOCKED,
    CONNECTION_CLOSE,
    CONNECTION_CLOSE_OK,
    CONNECTION_UNBLOCKED,
    NO_METHOD,
    octets,
)
from ..wire.methods import decode_method
from .channel import Channel
from .content import MAX_PARTIAL_MESSAGES, Content, Contents
from .dispatch import receive_connection_method, receive_content, receive_method
from .frame_progress import FrameProgress
from .handshake import Handshake
from .output import Output, Transport
from .publish_scanner import PublishScanner

if TYPE_CHECKING:
    from ..broker import Broker
    from ..message.model import Table
    from ..queue.queue import Queue
    from ..vhost import VirtualHost

logger = logging.getLogger(__name__)

_CHANNEL_OPEN = octets(CHANNEL_OPEN)
_CHANNEL_CLOSE = octets(CHANNEL_CLOSE)
_CHANNEL_CLOSE_OK = octets(CHANNEL_CLOSE_OK)
_CONNECTION_CLOSE = octets(CONNECTION_CLOSE)
_CONNECTION_CLOSE_OK = octets(CONNECTION_CLOSE_OK)
_CLOSE_OK_FRAME = method_frame(0, CONNECTION_CLOSE_OK)
_KINDS = frozenset((METHOD, HEADER, BODY, HEARTBEAT))
_PRE_TUNE_FRAME_MAX = 8_192
_JOINED_BYTES = 4_096
_READ_MS = 5
"""How long one read may be worked on before other connections have their turn. A read can hold
14,000 small methods, half a second of work."""
_ROW_MAX = 1_000
"""Consecutive single acks settled together: 10 us each if each message is its own batch."""
_OUT_MAX_BYTES = 524_288
"""Unsent output of a connection above which no more of its methods are handled."""


class State(Enum):
    HANDSHAKE = auto()
    OPEN = auto()
    CLOSING = auto()
    """We sent close and wait for close-ok; everything else is discarded."""
    CLOSED = auto()


class Connection(Output):
    """The connection of one client; `peer_is_loopback` decides whether `guest` may log in.

    `certified` is the user name from a verified client certificate, if there is one. Without
    `takes_passwords` that is the only way to log in.
    """

    def __init__(
        self,
        broker: Broker,
        transport: Transport,
        *,
        name: str = "",
        address: str = "",
        peer_is_loopback: bool = True,
        certified: str | None = None,
        takes_passwords: bool = True,
        fast: bool = True,
    ) -> None:
        super().__init__(broker, transport)
        self.name = name
        self.address = address
        self.peer_is_loopback = peer_is_loopback
        self.certified = certified
        self.takes_passwords = takes_passwords
        self.state = State.HANDSHAKE
        self.user: User = User("")
        self._user_version = 0
        self.client_properties: Table = {}
        self.wants_cancel_notify = False
        self.wants_blocked_notify = False
        self.vhost: VirtualHost
        self.frame_max = _PRE_TUNE_FRAME_MAX
        self.channel_max = broker.limits.channel_max
        self.heartbeat_s = 0
        self.exclusive_queues: dict[Queue, None] = {}
        self.started_ms = broker.now_ms
        self.received_ms = broker.now_ms
        self.handshake: Handshake | None = Handshake(self)
        self.has_partial_frame = False
        self.frame_progress = FrameProgress(broker.now_ms)
        self.closing_since_ms = 0
        self._fast = fast
        self._scanner = PublishScanner(self)
        self._tail = b""
        self.current_method = NO_METHOD
        self._lost_frames = False
        self.contents = Contents()
        """Incomplete messages; while there are any, every frame is decoded by itself."""
        self.waiting_reply_bytes = 0
        """Replies that wait behind a tx.commit until the disk has it."""
        self.blocked = False
        """Stopped at a publish by a memory or disk alarm; the socket is not read."""
        self.awaits_answer = False
        """Whether a method's reply waits for the disk or for sliced work. Later methods are not
        handled before it: they could take the message that a basic.get waits for, or their
        replies could overtake."""
        self.awaits_room = False
        """A message waits for memory until other incomplete ones of its user are complete."""
        self.unfinished = False
        """Whole frames of the last read are left: call `receive(b"")` in a later turn."""
        self._frame_end = 0
        """The end of the current frame, where parsing goes on after an error; 0 if unknown."""
        broker.connections[self] = None

    # -- input

    def receive(self, data: bytes) -> None:
        """Handles bytes from the client, cut anywhere; never raises for what a client sent."""
        self.unfinished = False
        if data:
            self.received_ms = self.broker.now_ms
        if self.user.version != self._user_version:
            self._user_changed()
        if self.state is State.CLOSED:
            return
        start = 0
        size = len(self._tail) + len(data)
        if self._tail:
            data, start = self._join(self._tail, data)
        if self._lost_frames:
            self._await_close_ok(data)
            return
        try:
            at = self._consume(data, start)
            self._scanner.flush()
            self.current_method = NO_METHOD
        except ConnectionFault as error:
            self._failed(error, data)
            return
        if self.is_closed:
            return
        left = len(data) - at
        if left:
            is_another = not self.has_partial_frame or left < size
            self.frame_progress.grown(left, self.broker.now_ms, is_another=is_another)
            self._tail = data[at:]
        self.has_partial_frame = left > 0
        self.unfinished = self.has_partial_frame and not self.is_stopped and self.must_rest

    def _join(self, tail: bytes, data: bytes) -> tuple[bytes, int]:
        """Prepends the rest of the last read; returns the bytes to parse and the offset to start.

        Copying a large read to complete one message costs more than everything else (half of the
        broker's time when batches stay in memory), so the message is completed with the first
        few kilobytes of the read if that is enough.
        """
        self._tail = b""
        if len(data) > 4 * _JOINED_BYTES and self.state is State.OPEN:
            joined = tail + data[:_JOINED_BYTES]
            try:
                at = self._consume(joined, 0)
            except ConnectionFault as error:
                self._failed(error, joined)
                return self._join(self._tail, data[_JOINED_BYTES:])
            if at >= len(tail):
                return data, at - len(tail)
            tail = joined[at : len(tail)]
        return tail + data, 0

    def _failed(self, error: ConnectionFault, data: bytes) -> None:
        """Publishes what came before the error and closes; later bytes are only searched for
        close and close-ok."""
        frame_end = self._frame_end
        self._scanner.flush()
        self.fail(error)
        if error.code == 501 or frame_end == 0:
            self._lost_frames = True
            self._await_close_ok(data)
        else:
            self.receive(data[frame_end:])

    @property
    def must_rest(self) -> bool:
        """Whether the rest of a read has to wait for a later turn: 5 ms were spent on it, or the
        client does not read its replies. Checked before each step slower than the batch path."""
        if self._out_bytes + self.waiting_reply_bytes > _OUT_MAX_BYTES or not self.socket_writable:
            return True
        return self.broker.clock.now_ms() - self.broker.now_ms >= _READ_MS

    def _await_close_ok(self, data: bytes) -> None:
        """Looks for close-ok at the end of the stream, where frame boundaries are lost."""
        if data.endswith(_CLOSE_OK_FRAME):
            self.finish()
        else:
            self._tail = data[-len(_CLOSE_OK_FRAME) :]

    def _consume(self, data: bytes, at: int) -> int:
        """Handles all whole frames from `at` on; returns the offset of the rest."""
        size = len(data)
        alarmed = self.broker.alarms.any
        if self.handshake is not None and self.handshake.expects_header:
            at = self.handshake.receive_header(data)
            if at == 0:
                return 0
        while self.state is not State.CLOSED:
            if self.awaits_answer or self.awaits_room:
                return at
            if self.handshake is not None:
                if self.handshake.paused:
                    self.handshake.check_kept(size - at)
                    return at
            elif self._fast and self.state is State.OPEN and not self.contents and not alarmed:
                self._frame_end = 0
                at = self._scanner.scan(data, at, size, self.frame_max)
                if at < 0:
                    return ~at
            if size - at < HEAD_BYTES:
                return at
            self.current_method = NO_METHOD
            kind = data[at]
            length = int.from_bytes(data[at + 3 : at + 7], "big")
            end = at + FRAME_OVERHEAD_BYTES + length
            if kind not in _KINDS:
                raise ConnectionFault(501, f"unknown frame type {kind}")
            if length > self.frame_max:
                raise ConnectionFault(
                    501, f"frame of {length} bytes is larger than frame_max {self.frame_max}"
                )
            if end > size:
                return at
            self._frame_end = end
            if data[end - 1] != END:
                raise ConnectionFault(501, f"frame ends with octet {data[end - 1]}, not {END}")
            if alarmed and self._publishes(kind, data[at + 7 : at + 11]):
                self._scanner.flush()
                self._stop_publisher()
                return at
            if (
                kind == METHOD
                and self._fast
                and length == ACK_FRAME_BYTES - FRAME_OVERHEAD_BYTES
                and self.state is State.OPEN
                and data[at + 7 : at + 11] == ACK
                and data[at + 1 : at + 3] != b"\0\0"
            ):
                at = self._acks(data, at, size)
                if self.broker.clock.now_ms() - self.broker.now_ms >= _READ_MS:
                    return at
                continue
            if kind != HEARTBEAT and self.must_rest:
                return at
            self._scanner.flush()
            try:
                self._frame(kind, data[at + 1] << 8 | data[at + 2], data[at + 7 : end - 1])
            except NameBusy as busy:
                self.wait_until(busy.wait)  # and take the same frame again
                return at
            at = end
        return size

    def _acks(self, data: bytes, at: int, size: int) -> int:
        """Handles an ack together with the following ones whose tags are consecutive."""
        number = data[at + 1] << 8 | data[at + 2]
        head = data[at : at + 11]
        first = last = int.from_bytes(data[at + 11 : at + 19], "big")
        multiple = bool(data[at + 19] & 1)
        at += ACK_FRAME_BYTES
        if not multiple:
            while (
                last - first < _ROW_MAX
                and at + ACK_FRAME_BYTES <= size
                and data.startswith(head, at)
                and int.from_bytes(data[at + 11 : at + 19], "big") == last + 1
                and data[at + 19] == 0
                and data[at + 20] == END
            ):
                last += 1
                at += ACK_FRAME_BYTES
        self.current_method = BASIC_ACK
        channel = self.open_channel(number)
        if channel is None:
            return at
        if channel.content is not None:
            channel.expect_no_content()
        try:
            if first == last or multiple:
                channel.acknowledge(last, last, multiple)
            else:
                self._acknowledge_each(channel, first, last)
        except ChannelError as error:
            self.fail_channel(number, error, BASIC_ACK)
        return at

    def _acknowledge_each(self, channel: Channel, first: int, last: int) -> None:
        """Settles consecutive single acks: at once if all tags are known, else one by one up to
        the unknown tag."""
        try:
            channel.acknowledge(first, last, False)
        except ChannelError:
            for tag in range(first, last + 1):
                channel.acknowledge(tag, tag, False)

    def _frame(self, kind: int, number: int, payload: bytes) -> None:
        if kind == HEARTBEAT:
            if number:
                raise ConnectionFault(505, f"heartbeat on channel {number}")
            if payload:
                raise ConnectionFault(501, f"heartbeat with a payload of {len(payload)} bytes")
            return
        if self.state is State.CLOSING:
            self._closing_frame(kind, number, payload)
        elif kind == METHOD:
            self._method(number, payload)
        else:
            if not number or self.handshake is not None:
                raise ConnectionFault(505, f"content frame on channel {number}")
            self._content(kind, number, payload)

    def _method(self, number: int, payload: bytes) -> None:
        self.current_method = int.from_bytes(payload[:4].ljust(4, b"\0"), "big")
        if number == 0:
            receive_connection_method(self, decode_method(payload))
            self.current_method = NO_METHOD
            return
        if self.handshake is not None:
            raise ConnectionFault(504, "the connection is not open yet")
        try:
            self._channel_method(number, payload)
        except ChannelError as error:
            self.fail_channel(number, error, self.current_method)
        self.current_method = NO_METHOD

    def _channel_method(self, number: int, payload: bytes) -> None:
        channel = self.channels.get(number)
        if payload[:4] == _CHANNEL_OPEN:
            decode_method(payload)
            self._open_channel(number)
        elif payload[:4] == _CHANNEL_CLOSE:
            decode_method(payload)
            self._close_channel(number)
        elif payload[:4] == _CHANNEL_CLOSE_OK:
            if channel is not None and not channel.open:
                del self.channels[number]
        elif channel is None:
            raise ConnectionFault(504, f"channel {number} is not open")
        elif not channel.open:
            decode_method(payload)
        else:
            channel.expect_no_content()
            receive_method(channel, payload)

    def _content(self, kind: int, number: int, payload: bytes) -> None:
        channel = self.open_channel(number)
        if channel is None:
            return
        if channel.content is None:
            raise ConnectionFault(505, "content frame without a publish before it")
        self.current_method = BASIC_PUBLISH
        try:
            receive_content(channel, kind, payload)
        except ChannelError as error:
            self.fail_channel(number, error, BASIC_PUBLISH)
        self.current_method = NO_METHOD

    @property
    def buffered_bytes(self) -> int:
        """Bytes buffered for output or unparsed; incomplete messages are counted elsewhere."""
        return self._out_bytes + self.waiting_reply_bytes + len(self._tail)

    def content_declared(self, content: Content) -> None:
        """Claims memory for a message whose header has come, or waits for it."""
        max_bytes = MAX_PARTIAL_MESSAGES * self.broker.limits.max_message_bytes
        if not self.contents.declare(content, max_bytes, self._go_on):
            self.awaits_room = True

    def end_content(self, channel: Channel) -> None:
        """Forgets a message that is complete or aborted, and goes on reading if it waited."""
        self.contents.end(channel)
        if self.awaits_room:
            self._go_on()

    # -- alarms

    def _publishes(self, kind: int, method: bytes) -> bool:
        """Whether a frame begins or continues a published message."""
        if self.state is not State.OPEN:
            return False
        if kind == METHOD:
            return method == PUBLISH
        return kind != HEARTBEAT and bool(self.contents)

    def _stop_publisher(self) -> None:
        """Stops reading at a publish because of an alarm; later frames, acks too, wait."""
        if self.blocked:
            return
        self.blocked = True
        alarms = self.broker.alarms
        alarms.block(self)
        waiting = sum(channel.unacked_count for channel in self.channels.values())
        logger.log(
            logging.WARNING if waiting else logging.INFO,
            "connection %s: blocked, %s: reading stops at its publish, so the acks of its %d "
            "unacked messages wait too",
            self.name,
            alarms.reason,
            waiting,
        )
        if self.wants_blocked_notify:
            self.write(method_frame(0, CONNECTION_BLOCKED, short_string(alarms.reason)))

    def unblock(self) -> None:
        """Resumes reading after an alarm, and tells the client if it understands that."""
        if self.wants_blocked_notify:
            self.write(method_frame(0, CONNECTION_UNBLOCKED))
        self._go_on()

    @property
    def is_stopped(self) -> bool:
        """Whether reading waits until `transport.unblocked` is called."""
        return self.blocked or self.awaits_answer or self.awaits_room

    def wait_for(self, steps: Iterator[None]) -> None:
        """Starts sliced work; later methods of the client wait for its last step."""

        def work(done: Callback) -> Iterator[None]:
            try:
                yield from steps
            finally:
                done()

        self.wait_until(lambda done: self.broker.slices.start(work(done)))

    def wait_until(self, wait: Wait, action: Callback = lambda: None) -> None:
        """Runs `action` when `wait` calls back; later methods of the client wait for that."""
        is_over = False

        def done() -> None:
            nonlocal is_over
            is_over = True
            action()
            self.answered()

        wait(done)
        self.awaits_answer = not is_over

    def answered(self) -> None:
        """Goes on with the methods behind one that had to wait."""
        if self.awaits_answer:
            self._go_on()

    def _go_on(self) -> None:
        self.blocked = self.awaits_answer = self.awaits_room = False
        self.unfinished = bool(self._tail)
        self.transport.unblocked()

    # -- channels

    def open_channel(self, number: int) -> Channel | None:
        """Returns the channel; None if it is closing and discards its frames.

        Raises:
            ConnectionFault: 504 if it was never opened.
        """
        channel = self.channels.get(number)
        if channel is None:
            raise ConnectionFault(504, f"channel {number} is not open")
        return channel if channel.open else None

    def _open_channel(self, number: int) -> None:
        if number in self.channels:
            raise ConnectionFault(504, f"second 'channel.open' seen on channel {number}")
        if len(self.channels) >= self.channel_max:
            raise ConnectionFault(
                530,
                f"number of channels opened ({len(self.channels)}) has reached the negotiated "
                f"channel_max ({self.channel_max})",
            )
        self.broker.occupancy.check_channels(self.user)
        channel = self.channels[number] = Channel(self, number)
        channel.send(CHANNEL_OPEN_OK, b"\0\0\0\0")

    def _close_channel(self, number: int) -> None:
        channel = self.channels.get(number)
        if channel is None:
            raise ConnectionFault(504, f"channel {number} is not open")
        if channel.open:
            self._release_channel(channel)
        del self.channels[number]
        self.write(method_frame(number, CHANNEL_CLOSE_OK))

    def fail_channel(self, number: int, error: ChannelError, method: int) -> None:
        """Closes one channel with the error's code; `method` caused it."""
        channel = self.channels[number]
        self._scanner.flush()
        self._release_channel(channel)
        channel.send(CHANNEL_CLOSE, _close_arguments(error, method))

    def _release_channel(self, channel: Channel) -> None:
        """Sends the confirms that are due, then requeues and cancels what the channel has."""
        if channel.confirms is not None:
            frames = channel.confirms.collect(channel.number, self.broker.store.committed)
            if frames:
                self.write(frames)
        self._confirming.pop(channel, None)
        self._scanner.forget()
        channel.release()

    # -- the end

    def fail(self, error: ProtocolError) -> None:
        """Closes the connection with the error's code and waits for close-ok."""
        if self.state is not State.OPEN and self.state is not State.HANDSHAKE:
            return
        self._lost_frames = error.code == 541
        # 320 is an operator's action, such as a stop, which would log a line for every client.
        level = logging.INFO if error.code == 320 else logging.WARNING
        logger.log(level, "connection %s: %s", self.name, error.reply_text)
        self._release()
        if self.handshake is not None and self.handshake.expects_header:
            self.finish()
            return
        self.state = State.CLOSING
        self.closing_since_ms = self.broker.now_ms
        self.handshake = None
        self.write(method_frame(0, CONNECTION_CLOSE, _close_arguments(error, self.current_method)))
        self.current_method = NO_METHOD

    @property
    def is_closed(self) -> bool:
        return self.state is State.CLOSED

    def close_by_client(self) -> None:
        """Handles connection.close: releases everything, then sends close-ok."""
        self._release()
        self.write(method_frame(0, CONNECTION_CLOSE_OK))
        self.finish()

    def abandon(self) -> None:
        """Ends the connection after its transport's close handshake or protocol error."""
        if not self.is_closed:
            self._release()
            self.finish()

    def finish(self) -> None:
        """Flushes the output and closes the transport; later input is discarded."""
        self.state = State.CLOSED
        self.closing_since_ms = self.broker.now_ms
        self.handshake = None
        self.unfinished = False
        self._tail = b""
        self.end_output()

    def lost(self) -> None:
        """Releases everything after the socket is lost."""
        if self.state is not State.CLOSED:
            self._release()
            self.state = State.CLOSED
        self.handshake = None
        self.unfinished = False
        self.drop_output()
        self._scanner.end()

    def _closing_frame(self, kind: int, number: int, payload: bytes) -> None:
        if kind != METHOD or number:
            return
        if payload[:4] == _CONNECTION_CLOSE:
            self.write(method_frame(0, CONNECTION_CLOSE_OK))
            self.finish()
        elif payload[:4] == _CONNECTION_CLOSE_OK:
            self.finish()

    def _release(self) -> None:
        """Requeues unacked messages, cancels consumers, deletes exclusive queues."""
        self._confirming.clear()
        if self.is_stopped:
            # Later frames are only searched for close and close-ok, which must be read.
            self.broker.alarms.forget(self)
            self._go_on()
        self.broker.occupancy.leave(self)
        for channel in self.channels.values():
            if channel.open:
                channel.release()
        self.channels.clear()
        queues, self.exclusive_queues = self.exclusive_queues, {}
        if queues:
            for queue in queues:
                queue.owner = OWNER_GONE
            self.broker.slices.start(for_each(queues, self.vhost.drop_queue))
        self.broker.connections.pop(self, None)

    def forget_targets(self) -> None:
        """Drops the resolved publish targets after a change of a channel's mode or of rights."""
        self._scanner.flush()
        self._scanner.forget()

    def _user_changed(self) -> None:
        """Drops cached rights; closes the connection if its user was removed."""
        self._user_version = self.user.version
        self.forget_targets()
        if self.user.removed:
            self.force_removed()

    def force_removed(self) -> None:
        """Closes the connection of a deleted user."""
        self.force(f"user '{self.user.name}' is deleted")

    def force(self, reason: str) -> None:
        """Closes the connection on an operator's behalf (320)."""
        self.fail(ConnectionFault(320, reason))
        self.broker.on_work()

    def logged_in(self, user: User) -> None:
        self.user = user
        self._user_version = user.version

    def opened(self, vhost: VirtualHost) -> None:
        """Ends the handshake: the client has opened a virtual host."""
        self.vhost = vhost
        self.state = State.OPEN
        self.handshake = None


def _close_arguments(error: ProtocolError, method: int) -> bytes:
    return error.code.to_bytes(2, "big") + short_string(error.reply_text) + octets(method)
