"""The publish targets of a connection, by their whole method frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..errors import ChannelError
from ..publish.target import PublishTarget, read_target
from ..wire.method_ids import BASIC_PUBLISH

if TYPE_CHECKING:
    from .channel import Channel
    from .channel_table import ChannelTable
    from .context import ConnectionContext

TARGETS_MAX: Final = 1024
"""Method frames that are cached; others share targets if only their routing keys differ."""
_SHARED_MAX: Final = 64


class TargetCache:
    """Publish targets; `by_frame` has those that are found without a call."""

    __slots__ = ("_channels", "_shared", "by_frame")

    def __init__(self, channels: ChannelTable) -> None:
        self._channels = channels
        self.by_frame: dict[bytes, PublishTarget] = {}
        self._shared: dict[tuple[bytes, bytes, int], PublishTarget] = {}

    def clear(self) -> None:
        """Drops all targets, after a channel closed or the user's rights changed."""
        for target in self.by_frame.values():
            target.route.release()
        self.by_frame.clear()
        self._clear_shared()

    def resolve(self, connection: ConnectionContext, frame: bytes) -> PublishTarget | None:
        """Returns the target of a frame that is not cached, or whose route is dead; None leaves it
        to the handling of single frames."""
        number = frame[1] << 8 | frame[2]
        channel = self._channels.get(number)
        if channel is None or not channel.open or channel.content is not None:
            return None
        keep = len(self.by_frame) < TARGETS_MAX or frame in self.by_frame
        connection.current_method = BASIC_PUBLISH
        try:
            if not keep:
                return self._resolve_shared(channel, frame)
            target = read_target(channel, frame[7:-1], watched=True)
        except ChannelError as error:
            self._channels.fail(number, error, BASIC_PUBLISH)
            return None
        self.by_frame[frame] = target
        return target

    def _resolve_shared(self, channel: Channel, frame: bytes) -> PublishTarget:
        """Resolves a frame that is not worth caching: each message has another routing key.

        The common part of such frames, channel, exchange and flags, is cached as one target, whose
        key and queues are replaced each time.
        """
        key_at = 14 + frame[13] if len(frame) > 13 else len(frame)
        if key_at + 2 >= len(frame) or frame[key_at] != len(frame) - key_at - 3:
            return read_target(channel, frame[7:-1], watched=False)
        shared = (frame[:3], frame[13:key_at], frame[-2])
        target = self._shared.get(shared)
        if target is None or target.route.dead:
            if len(self._shared) >= _SHARED_MAX:
                self._clear_shared()
            target = read_target(channel, frame[7:-1], watched=True)
            self._shared[shared] = target
        else:
            target.set_routing_key(frame[13:-2], frame[key_at + 1 : -2])
        return target

    def _clear_shared(self) -> None:
        for target in self._shared.values():
            target.route.release()
        self._shared.clear()
