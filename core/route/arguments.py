"""Checks and reads an exchange's arguments when it is declared."""

from __future__ import annotations

import logging
from collections.abc import Set

from ..errors import ChannelError, precondition_failed
from ..message.equivalence import resource, type_name
from ..message.model import Table

logger = logging.getLogger(__name__)


class ExchangeArguments:
    """The arguments of one declaration; each method raises `ChannelError` 406."""

    def __init__(self, name: str, vhost: str, table: Table) -> None:
        self.where = resource("exchange", name, vhost)
        self.table = table

    def invalid(self, argument: str, why: str) -> ChannelError:
        return precondition_failed(f"invalid arg '{argument}' for {self.where}: {why}")

    def text(self, argument: str) -> str | None:
        """Returns the value, None if it is not set."""
        if argument not in self.table:
            return None
        value = self.table[argument]
        if not isinstance(value, str):
            raise precondition_failed(
                f"invalid type '{type_name(value)}' for arg '{argument}' in {self.where}"
            )
        return value

    def integer(self, argument: str, low: int, high: int) -> int | None:
        """Returns the value, None if it is not set."""
        if argument not in self.table:
            return None
        value = self.table[argument]
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.invalid(argument, f"{type_name(value)} given, a whole number is needed")
        if not low <= value <= high:
            raise self.invalid(argument, f"{value} is out of range {low} to {high}")
        return value

    def see_unknown(self, known: Set[str], *, strict: bool) -> None:
        """Logs unknown arguments, which old clients send; raises for them only if `strict`."""
        for argument in sorted(self.table.keys() - known):
            if strict and argument.startswith("x-"):
                raise self.invalid(argument, "there is no such argument (strict-arguments is on)")
            logger.warning("%s: unknown argument %r is kept and ignored", self.where, argument)
