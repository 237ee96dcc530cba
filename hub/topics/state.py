"""The state of a topic in memory; the digests of its entries stay on disk."""

from __future__ import annotations

import asyncio
import math

from .binding_windows import BindingWindows


class TopicState:
    """A topic with at least one queue bound to it; `TopicStates` keeps it and its row the same."""

    __slots__ = (
        "being_bound", "binding_windows", "is_due", "is_pinged_again", "is_running", "key", "lock",
        "new_subscribers", "not_before", "started_s", "tries", "url",
    )  # fmt: skip

    def __init__(self, key: str, url: str) -> None:
        self.key = key
        self.url = url
        self.lock = asyncio.Lock()
        """Held while its content is compared and distributed."""
        self.is_due = False
        """Whether its row has a time to fetch it."""
        self.is_running = False
        """Whether it is being fetched."""
        self.is_pinged_again = False
        """Whether it was pinged after the current fetch began."""
        self.tries = 0
        """Failed fetches since the last ping."""
        self.not_before = 0.0
        """The wall time before which its server does not want to be asked again."""
        self.started_s = -math.inf
        """When the last fetch began; monotonic."""
        self.new_subscribers: dict[str, None] = {}
        """Identities of subscriptions that have not been sent any content, as in the table."""
        self.being_bound: set[str] = set()
        """Identities of new subscribers whose queues are being bound."""
        self.binding_windows = BindingWindows()

    def begin(self, now_s: float) -> None:
        """Begins a fetch."""
        self.is_running, self.is_pinged_again = True, False
        self.started_s = now_s

    def wake(self) -> bool:
        """Marks the topic as due. Returns whether a fetch has to be scheduled: the current fetch
        does that when it ends."""
        self.is_due, self.tries = True, 0
        if self.is_running:
            self.is_pinged_again = True
        return not self.is_running
