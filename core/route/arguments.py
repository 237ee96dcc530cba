"""Checks and reads an exchange's arguments when it is declared."""

from __future__ import annotations

import logging
from collections.abc import Collection, Set
from typing import Final

from ..errors import ChannelError, precondition_failed
from ..message.equivalence import resource, type_name, value_text
from ..message.model import Table

logger = logging.getLogger(__name__)

MAX_NAME_BYTES: Final = 255
"""A name travels as a short string (AMQP 0-9-1 4.2.5.3)."""


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

    def choice(self, argument: str, allowed: Collection[str]) -> str:
        """Returns the value, which must be set."""
        value = self.table.get(argument)
        if isinstance(value, str) and value in allowed:
            return value
        given = "nothing" if value is None else f"'{value_text(value)}'"
        raise self.invalid(argument, f"{given} given, it must be one of {', '.join(allowed)}")

    def exchange_name(self, argument: str) -> str | None:
        """Returns the value, None if it is not set."""
        name = self.text(argument)
        if name is None:
            return None
        if len(name.encode()) > MAX_NAME_BYTES or "\r" in name or "\n" in name:
            raise self.invalid(argument, "not the name of an exchange")
        return name

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

    def check_unknown(self, known: Set[str], *, strict: bool) -> None:
        """Logs unknown arguments, which old clients send; raises for them only if `strict`."""
        for argument in sorted(self.table.keys() - known):
            if strict and argument.startswith("x-"):
                raise self.invalid(argument, "there is no such argument (strict-arguments is on)")
            logger.warning("%s: unknown argument %r is stored and ignored", self.where, argument)
