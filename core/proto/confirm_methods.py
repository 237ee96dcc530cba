"""The handler of class confirm: publisher confirms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pamqp import commands

from ..errors import precondition_failed
from ..wire.method_ids import CONFIRM_SELECT_OK
from .confirms import Confirms

if TYPE_CHECKING:
    from .channel import Channel


def select(channel: Channel, method: commands.Confirm.Select) -> None:
    """Switches to confirm mode: publishes are numbered from 1. Repeats change nothing.

    Raises `ChannelError` 406 on a channel with transactions.
    """
    if channel.transaction is not None:
        raise precondition_failed("cannot switch from tx to confirm mode")
    if channel.confirms is None:
        channel.confirms = Confirms()
        channel.connection.forget_targets()
    if not method.nowait:
        channel.send(CONFIRM_SELECT_OK)
