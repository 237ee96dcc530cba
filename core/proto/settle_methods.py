"""Handlers of the methods of class basic that settle deliveries (AMQP 0-9-1 1.8.3.13-17)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pamqp import commands

from ..errors import ChannelError
from ..wire.method_ids import BASIC_NACK, BASIC_RECOVER_OK
from . import sliced_settlement
from .settlement import Settlement, acknowledge, counted, reject, requeue_failed, requeue_returned

if TYPE_CHECKING:
    from ..queue.unacked import Detached
    from .channel import Channel
    from .transaction import Transaction


def basic_ack(channel: Channel, method: commands.Basic.Ack) -> None:
    ack(channel, method.delivery_tag, method.delivery_tag, method.multiple)


def basic_nack(channel: Channel, method: commands.Basic.Nack) -> None:
    settlement = requeue_returned if method.requeue else reject
    _refuse(channel, method.delivery_tag, method.multiple, settlement)


def basic_reject(channel: Channel, method: commands.Basic.Reject) -> None:
    settlement = requeue_failed if method.requeue else reject
    _refuse(channel, method.delivery_tag or 0, False, settlement)


def basic_recover(channel: Channel, method: commands.Basic.Recover) -> None:
    channel.send(BASIC_RECOVER_OK)
    _recover(channel, method.requeue)


def basic_recover_async(channel: Channel, method: commands.Basic.RecoverAsync) -> None:
    _recover(channel, method.requeue)


def ack(channel: Channel, first: int, last: int, multiple: bool) -> None:
    """Acks tags `first` to `last`, or all up to `last`. Raises `ChannelError` 406 for an unknown
    tag."""
    if multiple and channel.deliveries.unacked.is_long:
        many = channel.deliveries.detach(last)
        if channel.transaction is not None:
            channel.transaction.settle_unseen(acknowledge, many)
        else:
            acked = counted(channel, acknowledge, many)
            channel.broker.slices.start(sliced_settlement.settle(channel, acked, acknowledge))
        return
    taken = channel.deliveries.take(first, last, multiple)
    if channel.transaction is not None:
        channel.transaction.settle(acknowledge, taken)
        return
    for delivery in counted(channel, acknowledge, taken):
        delivery.queue.settle(delivery.messages)
    channel.credit_back(taken)


def _refuse(channel: Channel, tag: int, multiple: bool, settlement: Settlement) -> None:
    """Requeues or dead-letters a delivery, or all up to `tag`. Raises as `ack`."""
    if multiple and channel.deliveries.unacked.is_long:
        _refuse_many(channel, channel.deliveries.detach(tag), settlement)
        return
    taken = channel.deliveries.take(tag, tag, multiple)
    if channel.transaction is not None:
        channel.transaction.settle(settlement, taken)
        return
    for delivery in counted(channel, settlement, taken):
        settlement(delivery)
    channel.credit_back(taken)


def _refuse_many(channel: Channel, many: Detached, settlement: Settlement) -> None:
    if channel.transaction is not None:
        channel.transaction.settle_unseen(settlement, many)
        weigh = _weigh(channel, channel.transaction, settlement, many)
        channel.connection.pending.wait_for(weigh)
    elif settlement is reject:
        rejected = counted(channel, reject, many)
        channel.broker.slices.start(sliced_settlement.settle(channel, rejected, reject))
    else:
        failed = settlement is requeue_failed
        returned = counted(channel, settlement, many)
        channel.broker.slices.start(sliced_settlement.requeue(channel, returned, failed=failed))


def _weigh(
    channel: Channel, transaction: Transaction, settlement: Settlement, many: Detached
) -> Iterator[None]:
    try:
        yield from transaction.weigh(settlement, many)
    except ChannelError as error:
        channel.connection.fail_channel(channel.number, error, BASIC_NACK)


def _recover(channel: Channel, requeue: bool) -> None:
    """Requeues all unacked deliveries, or redelivers them to their consumers (1.8.3.16)."""
    everything = channel.deliveries.unacked.detach_all()
    if requeue:
        work = sliced_settlement.requeue(channel, everything, failed=False)
    else:
        work = sliced_settlement.send_again(channel, everything)
    channel.broker.slices.start(work)
