"""An upstream that is being served, and what of it is kept in memory alone."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict

from .upstream import Upstream, UpstreamLease

REMEMBERED = 1_000


class UpstreamState:
    """Mutable on purpose: steps replace `upstream`, one at a time under `lock`."""

    __slots__ = ("answers", "is_over", "keeping", "leaving", "lock", "seen", "upstream")

    def __init__(self, upstream: Upstream) -> None:
        self.upstream = upstream
        self.lock = asyncio.Lock()
        self.is_over = False
        """Whether its row is gone."""
        self.answers: dict[str, asyncio.Event] = {}
        """By token: set when the hub has asked back, or denied."""
        self.keeping: asyncio.Task[None] | None = None
        self.leaving: dict[str, asyncio.Task[None]] = {}
        """By token, what tells hubs that a line is over."""
        self.seen = SeenIds()

    def answer_to(self, lease: UpstreamLease) -> asyncio.Event:
        return self.answers.setdefault(lease.token, asyncio.Event())

    def answered(self, token: str) -> None:
        if token in self.answers:
            self.answers[token].set()


class SeenIds:
    """The ids of the last messages that were confirmed. One that its hub repeats, for our answer
    got lost on the way, is answered again and not published twice."""

    def __init__(self, limit: int = REMEMBERED) -> None:
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
    """Of both, for not every sender's ids are its alone."""
    return hashlib.sha256(webhook_id + b"\0" + body).digest()
