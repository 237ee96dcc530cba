"""The state of an upstream in memory: its tasks, awaited answers and messages taken."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict

from .upstream import Upstream, UpstreamLease

MAX_SEEN = 1_000


class UpstreamState:
    """An upstream and its state; steps replace `upstream`, one at a time under `lock`."""

    __slots__ = ("answers", "is_over", "keeping", "leaving", "lock", "seen", "upstream")

    def __init__(self, upstream: Upstream) -> None:
        self.upstream = upstream
        self.lock = asyncio.Lock()
        self.is_over = False
        """Whether its row has been deleted."""
        self.answers: dict[str, asyncio.Event] = {}
        """Set when the hub verifies or denies a request, by the lease's token."""
        self.keeping: asyncio.Task[None] | None = None
        self.leaving: dict[str, asyncio.Task[None]] = {}
        """The tasks that unsubscribe leases at their hubs, by the lease's token."""
        self.seen = SeenDigests()

    def answer_to(self, lease: UpstreamLease) -> asyncio.Event:
        """Returns the event that is set when the hub answers for the lease."""
        return self.answers.setdefault(lease.token, asyncio.Event())

    def answered(self, token: str) -> None:
        """Wakes whoever waits for the hub's answer."""
        if token in self.answers:
            self.answers[token].set()


class SeenDigests:
    """The digests of the last `limit` messages taken.

    A message that its hub repeats, because it missed the answer, is not published twice.
    """

    def __init__(self, limit: int = MAX_SEEN) -> None:
        self._limit = limit
        self._digests: OrderedDict[bytes, None] = OrderedDict()

    def __contains__(self, digest: bytes) -> bool:
        return digest in self._digests

    def add(self, digest: bytes) -> None:
        self._digests[digest] = None
        self._digests.move_to_end(digest)
        if len(self._digests) > self._limit:
            self._digests.popitem(last=False)


def digest_of(webhook_id: bytes, body: bytes) -> bytes:
    """Returns the digest of a message: not all senders have unique ids."""
    return hashlib.sha256(webhook_id + b"\0" + body).digest()
