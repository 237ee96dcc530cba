"""Routes: resolved answers that stay true until something they were made from changes.

A publisher keeps a route and tests one attribute, `dead`, per batch. No global epoch: each
watched thing knows the routes that used it, so a change ends those and no others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from .binding import Destination


class Watched:
    """Something that routes are made from."""

    __slots__ = ("routes",)

    def __init__(self) -> None:
        self.routes: set[Route] | None = None

    def changed(self) -> None:
        """Ends every route that was made from this."""
        routes, self.routes = self.routes, None
        if routes:
            _end(routes)


class Route:
    """The queues that messages go to, each once, in a stable order.

    `uses_key` and `uses_headers` tell whether the answer depends on them; if not, it holds for
    every key or all headers. With `each_message` it holds for one message only. `on_dead`
    callbacks run once, when the route dies, and must not raise.
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
        self._sources: Collection[Watched] = ()

    def watch(self, sources: Collection[Watched]) -> None:
        """Dies with the next change of any of these; they hold the route until it dies."""
        self._sources = sources
        for source in sources:
            if source.routes is None:
                source.routes = set()
            source.routes.add(self)

    def release(self) -> None:
        """For a cache that evicts it: nobody holds the route any more, and it counts as dead,
        since from now on no change would reach it."""
        _end((self,))

    def _detach(self) -> None:
        for source in self._sources:
            if source.routes is not None:
                source.routes.discard(self)
        self._sources = ()


def _end(routes: Iterable[Route]) -> None:
    # Every route is dead before the first callback runs, so no callback sees a stale one alive.
    callbacks: list[Callable[[], None]] = []
    for route in routes:
        route.dead = True
        route._detach()
        callbacks += route.on_dead or ()
        route.on_dead = None
    for callback in callbacks:
        callback()
