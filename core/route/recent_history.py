"""The recent history exchange: a fanout that replays the last messages to a new binding.

`x-recent-history-length` is their number, 20 by default. A message with the header
`x-recent-history-no-store` is not stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..message.model import FieldValue
from .arguments import ExchangeArguments
from .exchange import Exchange, ExchangeDeclaration
from .fanout import FanoutExchange
from .persistence import ARGUMENTS, ExchangePersistence
from .route import Destination

LENGTH: Final = "x-recent-history-length"
NO_STORE: Final = "x-recent-history-no-store"
LENGTH_DEFAULT: Final = 20


class RecentHistoryExchange(FanoutExchange):
    """A fanout exchange with a history.

    Raises `ChannelError` 406 for a length that is not a positive number, and for the arguments of
    persistent exchanges, which would contradict it.
    """

    __slots__ = ()

    known_arguments = Exchange.known_arguments | {LENGTH}
    keeps_history = True

    def __init__(self, declared: ExchangeDeclaration) -> None:
        super().__init__(declared)
        self.uses_headers = True
        arguments = ExchangeArguments(self.name, self.vhost, self.arguments)
        if self.persistence is not None:
            names = sorted(ARGUMENTS.intersection(self.arguments))
            raise arguments.invalid(names[0], f"{self.type_name} keeps the last {LENGTH}")
        length = arguments.integer(LENGTH, 1, 2**63 - 1) or LENGTH_DEFAULT
        self.persistence = ExchangePersistence(
            length, None, adds_offsets=False, replays_by_default=True
        )

    def history_queue(self, headers: Mapping[str, FieldValue] | None) -> Destination | None:
        return None if headers is not None and headers.get(NO_STORE) is True else self.inner
