"""The channels of a connection (AMQP 0-9-1 1.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ChannelError, ConnectionFault, ProtocolError
from ..wire.frames import method_frame, short_string
from ..wire.method_ids import CHANNEL_CLOSE, CHANNEL_CLOSE_OK, CHANNEL_OPEN_OK, octets
from .channel import Channel

if TYPE_CHECKING:
    from .context import ConnectionContext


class ChannelTable(dict[int, Channel]):
    """The channels of one connection by number, those included that wait for close-ok."""

    __slots__ = ()

    def usable(self, number: int) -> Channel | None:
        """Returns a channel; None if it is closing and discards its frames.

        Raises:
            ConnectionFault: 504 if it was never opened.
        """
        channel = self.get(number)
        if channel is None:
            raise ConnectionFault(504, f"channel {number} is not open")
        return channel if channel.open else None

    def open(self, connection: ConnectionContext, number: int) -> None:
        """Opens a channel and sends open-ok.

        Raises `ConnectionFault` 504 if the number is in use, 530 beyond a limit.
        """
        if number in self:
            raise ConnectionFault(504, f"second 'channel.open' seen on channel {number}")
        if len(self) >= connection.channel_max:
            raise ConnectionFault(
                530,
                f"number of channels opened ({len(self)}) has reached the negotiated "
                f"channel_max ({connection.channel_max})",
            )
        connection.broker.occupancy.check_channels(connection.user)
        channel = self[number] = Channel(connection, number)
        connection.broker.statistics.churned().channel_created += 1
        channel.send(CHANNEL_OPEN_OK, b"\0\0\0\0")

    def close(self, number: int) -> None:
        """Closes a channel for its client and sends close-ok.

        Raises `ConnectionFault` 504 if it was never opened.
        """
        channel = self.usable(number)
        if channel is not None:
            _release(channel)
        output = self.pop(number).output
        output.write(method_frame(number, CHANNEL_CLOSE_OK))

    def closed(self, number: int) -> None:
        """Handles close-ok; without a close before it, it is ignored."""
        channel = self.get(number)
        if channel is not None and not channel.open:
            del self[number]

    def fail(self, number: int, error: ChannelError, method: int) -> None:
        """Closes a channel with the error's code; `method` caused it."""
        channel = self[number]
        _release(channel)
        channel.send(CHANNEL_CLOSE, close_arguments(error, method))

    def end(self) -> None:
        """Releases all channels: the connection has ended."""
        for channel in self.values():
            if channel.open:
                channel.release()
        self.clear()

    def unacked_count(self) -> int:
        return sum(channel.unacked_count for channel in self.values())


def _release(channel: Channel) -> None:
    """Publishes what was gathered and sends the confirms that are due, then requeues and cancels
    what the channel has."""
    channel.connection.forget_targets()
    channel.output.end_confirms(channel)
    channel.release()


def close_arguments(error: ProtocolError, method: int) -> bytes:
    """The arguments of channel.close and connection.close."""
    return error.code.to_bytes(2, "big") + short_string(error.reply_text) + octets(method)
