"""The recent history exchange: a fanout that replays the last messages to a new binding.

`x-recent-history-length` is their number, 20 by default. A message with the header
`x-recent-history-no-store` is not stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

from ..message.model import FieldValue
from .arguments import ExchangeArguments
from .binding import Destination
from .exchange import ExchangeProperties
from .fanout import FanoutExchange
from .persistence import ARGUMENTS, ExchangePersistence
from .registry import register

LENGTH = "x-recent-history-length"
NO_STORE = "x-recent-history-no-store"
LENGTH_DEFAULT = 20


@register
class RecentHistoryExchange(FanoutExchange):
    """A fanout exchange with a history.

    Raises `ChannelError` 406 for a length that is not a positive number, and for the arguments of
    persistent exchanges, which would contradict it.
    """

    __slots__ = ()

    type_name = "x-recent-history"
    own_arguments = frozenset({LENGTH})
    uses_headers = True

    def __init__(self, name: str, **properties: Unpack[ExchangeProperties]) -> None:
        super().__init__(name, **properties)
        arguments = ExchangeArguments(name, self.vhost, self.arguments)
        if self.persistence is not None:
            names = sorted(ARGUMENTS & self.arguments.keys())
            raise arguments.invalid(names[0], f"{self.type_name} keeps the last {LENGTH}")
        length = arguments.integer(LENGTH, 1, 2**63 - 1) or LENGTH_DEFAULT
        self.persistence = ExchangePersistence(
            length, None, adds_offsets=False, replays_by_default=True
        )

    def history_queue(self, headers: Mapping[str, FieldValue] | None) -> Destination | None:
        return None if headers is not None and headers.get(NO_STORE) is True else self.inner
