"""Makes the items of an output of messages, in a worker process: their bodies may be hostile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ..formats.identity import scoped
from ..formats.model import encode_item
from .definition import Filter, TransformStep
from .filtering import accepts
from .messages import CollectedMessage, digest_of, item_of, scope_of
from .origins import ItemKey, origin_of
from .transforming import transformed

if TYPE_CHECKING:
    from ..workers.pool import Workers


class Selection(msgspec.Struct, array_like=True):
    """The filter and transform of an output, at a time."""

    filter: Filter
    transform: tuple[TransformStep, ...]
    now_s: float


class CollectedItem(msgspec.Struct, array_like=True):
    """An item as it is stored: `item` is JSON."""

    key: ItemKey
    digest: str
    item: bytes


class NearDuplicate(NamedTuple):
    """Two items that a run has found to be alike, the earlier one first."""

    first: ItemKey
    second: ItemKey


class CollectResult(msgspec.Struct, array_like=True):
    """The items and near-duplicates that messages have brought."""

    items: list[CollectedItem]
    near_duplicates: list[NearDuplicate]


async def collect(
    workers: Workers, origin: str, selection: Selection, messages: Sequence[CollectedMessage]
) -> CollectResult:
    """Returns the items of the messages that fulfil the filter, transformed.

    Raises `WorkFailed` and `WorkRefused`.
    """
    request = msgspec.msgpack.encode((selection, messages))
    reply = await workers.run("collect_items", request, origin=origin)
    return msgspec.msgpack.decode(reply, type=CollectResult)


def run(payload: bytes) -> bytes:
    """Makes the items, in the worker process."""
    selection, messages = msgspec.msgpack.decode(
        payload, type=tuple[Selection, list[CollectedMessage]]
    )
    collected = CollectResult([], [])
    for message in messages:
        if message.is_mark:
            collected.near_duplicates += _near_duplicates(message.body)
        else:
            collected.items += _items(selection, message)
    return msgspec.msgpack.encode(collected)


def _items(selection: Selection, message: CollectedMessage) -> list[CollectedItem]:
    item = item_of(message)
    if not accepts(selection.filter, item, selection.now_s):
        return []
    item = transformed(item, selection.transform, message.feed)
    key = _key_of(item.id, message.exchange, message.routing_key)
    item.id = key.id
    encoded = encode_item(item)
    return [CollectedItem(key, digest_of(message, encoded), encoded)]


def _key_of(item_id: str, exchange: str, routing_key: str) -> ItemKey:
    scope = scope_of(exchange, routing_key)
    return ItemKey(origin_of(exchange, routing_key), scoped(item_id, scope))


class _Pair(msgspec.Struct):
    """A result of the job `near-duplicates`."""

    first: str
    second: str
    first_exchange: str = ""
    first_routing_key: str = ""
    second_exchange: str = ""
    second_routing_key: str = ""


def _near_duplicates(body: bytes) -> list[NearDuplicate]:
    try:
        pair = msgspec.json.decode(body, type=_Pair)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return []
    first = _key_of(pair.first, pair.first_exchange, pair.first_routing_key)
    second = _key_of(pair.second, pair.second_exchange, pair.second_routing_key)
    return [NearDuplicate(first, second)]
