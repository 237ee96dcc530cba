"""Handlers of class tx (AMQP 0-9-1 1.9): select, commit, rollback."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pamqp import commands

from ..errors import precondition_failed
from ..wire.method_ids import TX_ROLLBACK_OK, TX_SELECT_OK
from .transaction import Transaction

if TYPE_CHECKING:
    from .channel import Channel


def select(channel: Channel, method: commands.Tx.Select) -> None:
    """Switches to tx mode: publishes and acks wait for tx.commit. Repeats change nothing.

    Raises `ChannelError` 406 on a channel with confirms.
    """
    if channel.confirms is not None:
        raise precondition_failed("cannot switch from confirm to tx mode")
    if channel.transaction is None:
        channel.transaction = Transaction(channel, channel.waiting_replies())
        channel.connection.forget_targets()
    channel.send(TX_SELECT_OK)


def commit(channel: Channel, method: commands.Tx.Commit) -> None:
    """Commits; commit-ok follows when the transaction is on disk."""
    _transaction(channel).commit()


def rollback(channel: Channel, method: commands.Tx.Rollback) -> None:
    _transaction(channel).rollback()
    channel.send(TX_ROLLBACK_OK)


def _transaction(channel: Channel) -> Transaction:
    if channel.transaction is None:
        raise precondition_failed("channel is not transactional")
    return channel.transaction
