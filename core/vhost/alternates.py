"""The alternate exchanges of a virtual host, with the exchanges that use them."""

from __future__ import annotations

from ..route.exchange import Exchange


class AlternateExchanges:
    """The exchanges that have an alternate exchange, by its name, whether or not it exists."""

    def __init__(self) -> None:
        self._users: dict[str, dict[Exchange, None]] = {}

    def add(self, exchange: Exchange) -> None:
        """Adds a declared exchange, if it has an alternate."""
        if exchange.alternate is not None:
            self._users.setdefault(exchange.alternate, {})[exchange] = None

    def remove(self, exchange: Exchange) -> None:
        """Removes a deleted exchange, if it had an alternate."""
        if exchange.alternate is not None:
            users = self._users[exchange.alternate]
            users.pop(exchange, None)
            if not users:
                del self._users[exchange.alternate]

    def change(self, exchange: Exchange, alternate: str | None) -> None:
        """Sets the alternate exchange, for a policy; None removes it."""
        self.remove(exchange)
        exchange.alternate = alternate
        self.add(exchange)
        exchange.changed()

    def invalidate(self, name: str) -> None:
        """Invalidates the routes that use the alternate exchange `name`: it was added or
        deleted."""
        for user in self._users.get(name, ()):
            user.changed()
