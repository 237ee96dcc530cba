"""Routes: resolved queues of a message, valid until an exchange or queue on the way changes.

A publisher caches a route and tests one attribute, `dead`, per batch. There is no global version:
each exchange and queue knows the routes that depend on it, so a change invalidates only those.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable


class Destination:
    """An exchange or queue: bindings lead to it, and routes depend on it. Hashed by identity."""

    __slots__ = ("deleted", "durable", "name", "routes")

    def __init__(self, name: str, *, durable: bool = False) -> None:
        self.name = name
        self.durable = durable
        self.deleted = False
        """Whether it was deleted: nothing is routed to it, whatever bindings it still has."""
        self.routes: set[Route] | None = None

    def changed(self) -> None:
        """Invalidates every route that depends on this."""
        routes, self.routes = self.routes, None
        if routes:
            _end(routes)


class Route:
    """The queues that messages are routed to, each once, in a stable order.

    `uses_key` and `uses_headers` say whether the route depends on them; if not, it is valid for
    every key or all headers. With `each_message` it is valid for one message only. `on_dead`
    callbacks run once, when the route is invalidated, and must not raise.
    """

    __slots__ = (
        "_sources", "dead", "each_message", "on_dead", "queues", "uses_headers", "uses_key",
    )  # fmt: skip

    def __init__(
        self,
        queues: tuple[Destination, ...],
        uses_key: bool,
        uses_headers: bool,
        each_message: bool = False,
    ) -> None:
        self.queues = queues
        self.uses_key = uses_key
        self.uses_headers = uses_headers
        self.each_message = each_message
        self.dead = False
        self.on_dead: list[Callable[[], None]] | None = None
        self._sources: Collection[Destination] = ()

    def watch(self, sources: Collection[Destination]) -> None:
        """Makes the route depend on these: the next change of any of them invalidates it."""
        self._sources = sources
        for source in sources:
            if source.routes is None:
                source.routes = set()
            source.routes.add(self)

    def release(self) -> None:
        """Drops a route evicted from a cache: it counts as dead, since no change reaches it from
        now on."""
        _end((self,))

    def _detach(self) -> None:
        for source in self._sources:
            if source.routes is not None:
                source.routes.discard(self)
        self._sources = ()


def _end(routes: Iterable[Route]) -> None:
    # Every route is dead before the first callback runs, so none sees a stale one as valid.
    callbacks: list[Callable[[], None]] = []
    for route in routes:
        route.dead = True
        route._detach()
        callbacks += route.on_dead or ()
        route.on_dead = None
    for callback in callbacks:
        callback()
