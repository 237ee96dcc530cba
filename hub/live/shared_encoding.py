"""Encodes kept messages once for all readers of a stream that are at the same place.

Each reader follows the stream by itself, so those that keep up ask for the same messages one after
another.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from .batch import EncodedBatch
from .cursors import cursors_of
from .encoding import MessageEncoder

if TYPE_CHECKING:
    from ..engine.port import ReadMessages

KEPT_BYTES: Final = 4 * 1024 * 1024
"""The limit of all kept messages; longer batches are not kept."""
KEPT_COUNT: Final = 64

_Place = tuple[str, tuple[str, ...], int, int]
"""Tag of the stream, keys of the reader, first offset, and number of messages."""


class SharedEncoding:
    """Keeps the batches that were asked for last."""

    def __init__(self, encoder: MessageEncoder) -> None:
        self._encoder = encoder
        self._batches: OrderedDict[_Place, EncodedBatch] = OrderedDict()
        self._bytes = 0

    def encode(
        self, tag: str, keys: tuple[str, ...], offsets: Sequence[int], read: ReadMessages
    ) -> EncodedBatch:
        """Returns the messages with these offsets, which match the keys."""
        place = tag, keys, offsets[0], len(offsets)
        found = self._batches.get(place)
        if found is None:
            found = self._encoder.encode(read(), cursors_of(offsets, tag))
            self._keep(place, found)
        return found

    def clear(self) -> None:
        """Forgets all, when nobody reads."""
        self._batches.clear()
        self._bytes = 0

    def _keep(self, place: _Place, batch: EncodedBatch) -> None:
        if batch.size_bytes > KEPT_BYTES:
            return
        self._batches[place] = batch
        self._bytes += batch.size_bytes
        while self._bytes > KEPT_BYTES or len(self._batches) > KEPT_COUNT:
            self._bytes -= self._batches.popitem(last=False)[1].size_bytes
