"""A topic that somebody is bound to, as it is worked with; its content's digests stay on disk."""

from __future__ import annotations

import asyncio
import math


class TopicState:
    """Changed under the lock for rows, so that it agrees with what is stored."""

    __slots__ = (
        "again", "being_bound", "is_due", "is_running", "key", "new_subscribers", "not_before",
        "started_s", "tries", "turn", "url",
    )  # fmt: skip

    def __init__(self, key: str, url: str) -> None:
        self.key = key
        self.url = url
        self.turn = asyncio.Lock()
        """Held by whoever compares and distributes its content."""
        self.is_due = False
        """Whether its row says that it is to be fetched."""
        self.is_running = False
        self.again = False
        """Whether it was pinged since the fetch began that is running."""
        self.tries = 0
        """Failures since the last ping."""
        self.not_before = 0.0
        """Until when, in wall time, its server wants to be left alone."""
        self.started_s = -math.inf
        """When the last fetch began; monotonic."""
        self.new_subscribers: dict[str, None] = {}
        """Identities of subscriptions that have not been sent any content yet, as stored."""
        self.being_bound: set[str] = set()
        """Those of them whose queue is being bound."""
