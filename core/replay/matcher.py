"""Which messages of the past a binding would have got."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..message.batch import Batch, MessageRange, split_envelope
from ..message.model import MessageHeaders
from ..wire.properties import HEADERS, split
from ..wire.tables import decode_table

if TYPE_CHECKING:
    from ..route.binding import Binding
    from ..route.exchange import Exchange

_REMEMBERED_MAX = 1_024


class Matcher:
    """Asks an exchange of the same type that has this binding and no other.

    So a type that shares messages out (consistent hash, random) gives the new binding all of them.
    """

    def __init__(self, exchange: Exchange, binding: Binding) -> None:
        self._probe = type(exchange)(
            exchange.name, durable=False, auto_delete=False, internal=False,
            arguments=exchange.arguments, vhost=exchange.vhost,
        )  # fmt: skip
        self._probe.bind(binding.destination, binding.routing_key, binding.arguments)
        self._takes_all = not (self._probe.uses_key or self._probe.uses_headers)
        self._answers: dict[tuple[bytes, bytes, tuple[str, ...]], bool] = {}

    def parts(self, messages: MessageRange, but: Sequence[Matcher] = ()) -> Iterator[MessageRange]:
        """The ranges of a range that match, and do not match any of those."""
        if self._takes_all and not but:
            yield messages
            return
        entry = messages.entry
        low = None
        for at in range(messages.low, messages.high):
            index = entry.index(at)
            wants = self._wants(entry.batch, index)
            if wants and not any(other._wants(entry.batch, index) for other in but):
                low = at if low is None else low
            elif low is not None:
                yield MessageRange(entry, low, at)
                low = None
        if low is not None:
            yield MessageRange(entry, low, messages.high)

    def _wants(self, batch: Batch, index: int) -> bool:
        if self._takes_all:
            return True
        key = batch.envelope(index), batch.properties(index), batch.bcc_keys
        answer = self._answers.get(key)
        if answer is None:
            if len(self._answers) >= _REMEMBERED_MAX:
                self._answers.clear()
            answer = self._answers[key] = self._ask(*key)
        return answer

    def _ask(self, envelope: bytes, properties: bytes, blind: tuple[str, ...]) -> bool:
        table = split(properties).get(HEADERS)
        headers = MessageHeaders(
            {} if table is None else decode_table(table, 0, len(table))[0], properties
        )
        keys = [split_envelope(envelope)[1]]
        if not self._probe.one_key:
            copies = headers.get("CC")
            if isinstance(copies, list):
                keys += [key for key in copies if isinstance(key, str)]
            keys += blind
        return any(True for key in keys for _ in self._probe.match(key, headers))
