"""Selects the stored messages that a binding would have matched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from ..message.batch import Batch
from ..message.envelope import split_envelope
from ..message.model import MessageHeaders, copy_keys
from ..message.queue_entry import MessageRange
from ..wire.properties import HEADERS, split
from ..wire.tables import decode_table

if TYPE_CHECKING:
    from ..route.binding import Binding
    from ..route.exchange import Exchange

_CACHE_MAX: Final = 1_024


class Matcher:
    """Matches messages with an exchange of the same type that has only this binding.

    So types that distribute messages (consistent hash, random) match all of them.
    """

    def __init__(self, exchange: Exchange, binding: Binding) -> None:
        self._probe = exchange.without_bindings()
        self._probe.bind(binding.destination, binding.routing_key, binding.arguments)
        self._takes_all = not (self._probe.uses_key or self._probe.uses_headers)
        self._cache: dict[tuple[bytes, bytes, tuple[str, ...]], bool] = {}

    def parts(
        self, messages: MessageRange, excluded: Sequence[Matcher] = ()
    ) -> Iterator[MessageRange]:
        """Yields the parts of a range that match, and do not match any of `excluded`."""
        if self._takes_all and not excluded:
            yield messages
            return
        entry = messages.entry
        low = None
        for at in range(messages.low, messages.high):
            index = entry.index(at)
            is_match = self.matches(entry.batch, index)
            if is_match and not any(other.matches(entry.batch, index) for other in excluded):
                low = at if low is None else low
            elif low is not None:
                yield MessageRange(entry, low, at)
                low = None
        if low is not None:
            yield MessageRange(entry, low, messages.high)

    def matches(self, batch: Batch, index: int) -> bool:
        """Returns whether the binding would have matched a message of a batch."""
        if self._takes_all:
            return True
        key = batch.envelope(index), batch.properties(index), batch.bcc_keys
        answer = self._cache.get(key)
        if answer is None:
            if len(self._cache) >= _CACHE_MAX:
                self._cache.clear()
            answer = self._cache[key] = self._match(*key)
        return answer

    def _match(self, envelope: bytes, properties: bytes, bcc_keys: tuple[str, ...]) -> bool:
        table = split(properties).get(HEADERS)
        headers = MessageHeaders(
            {} if table is None else decode_table(table, 0, len(table))[0], properties
        )
        keys = [split_envelope(envelope)[1]]
        if not self._probe.one_key:
            keys += [*copy_keys(headers), *bcc_keys]
        return any(True for key in keys for _ in self._probe.match(key, headers))
