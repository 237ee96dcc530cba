"""Requests that are answered with 202 and verified afterwards: none of them is forgotten.

Each is stored before the answer and deleted when its verification is over, so that a crash in
between asks again. They are bounded, in all and for each host, for whoever asks need not be the
one who is asked.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from ...core.clock import Clock
from ...core.errors import WarrenError
from ..errors import NotResolved, StorageFailed, TooManyPending
from ..lazy import Lazy
from ..requests import Mode, SubscribeRequest
from ..settings import HubSettings
from ..storage.storage import Storage
from ..subscriptions.subscription import identity_of_request
from ..tasks import Tasks
from .writer import VerificationWriter

if TYPE_CHECKING:
    from .rows import Pending, VerificationRows

AGAIN_S = (5.0, 300.0)  # after failures of the database, doubling: each asks the callback anew
AEAD = "cryptography.hazmat.primitives.ciphers.aead"

log = logging.getLogger(__name__)

CarryOut = Callable[[Mode, SubscribeRequest], Awaitable[None]]


class Verifications:
    """`carry_out` asks the callback and does what was asked for, or raises a `WarrenError`."""

    def __init__(
        self,
        storage: Storage,
        settings: HubSettings,
        clock: Clock,
        tasks: Tasks,
        carry_out: CarryOut,
    ) -> None:
        self._storage = storage
        self._settings = settings
        self._clock = clock
        self._tasks = tasks
        self._carry_out = carry_out
        self._rows = Lazy(self._open)
        self._writer = VerificationWriter(self._rows.get, tasks)
        self._count = 0
        self._hosts: Counter[str] = Counter()
        self._identities: Counter[str] = Counter()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def start(self) -> None:
        """Asks again what was pending when the hub stopped."""
        if self._storage.is_empty():
            return
        for pending in await (await self._rows.get()).all():
            self._enter(pending.request)
            self._begin(pending)

    def concern(self, request: SubscribeRequest) -> bool:
        """Whether anything is pending for the same subscription."""
        return identity_of_request(request) in self._identities

    async def accept(self, mode: Mode, request: SubscribeRequest) -> None:
        """Durable when it returns. Raises `TooManyPending` and `StorageFailed`."""
        self._require_room(_host(request))
        self._enter(request)
        try:
            pending = await self._store(mode, request)
        except BaseException:
            self._leave(request)
            raise
        self._begin(pending)

    async def _store(self, mode: Mode, request: SubscribeRequest) -> Pending:
        await self._rows.get()
        from .rows import Pending

        pending = Pending(uuid.uuid4().hex, mode, request, self._clock.wall_s())
        await self._writer.add(pending)
        return pending

    async def _open(self) -> VerificationRows:
        database = await self._storage.database()
        # In a thread, for the broker must not stand still while it is imported.
        await asyncio.to_thread(importlib.import_module, AEAD)
        from .rows import VerificationRows

        return VerificationRows(database, self._storage.sealer)

    def _require_room(self, host: str) -> None:
        reason = "too many verifications are waiting; try again later"
        if self._hosts[host] >= self._settings.max_pending_per_host:
            limit = f"{self._settings.max_pending_per_host} for one host"
            raise TooManyPending(reason, field="hub.callback", value=host, limit=limit)
        if self._count >= self._settings.max_pending_verifications:
            limit = f"{self._settings.max_pending_verifications} in all"
            raise TooManyPending(reason, field="hub.callback", limit=limit)

    def _enter(self, request: SubscribeRequest) -> None:
        self._count += 1
        self._hosts[_host(request)] += 1
        self._identities[identity_of_request(request)] += 1

    def _leave(self, request: SubscribeRequest) -> None:
        self._count -= 1
        _take(self._hosts, _host(request))
        _take(self._identities, identity_of_request(request))

    def _begin(self, pending: Pending) -> None:
        self._tasks.own(self._run(pending))

    async def _run(self, pending: Pending) -> None:
        """In the order in which they came, where they are about the same subscription."""
        identity = identity_of_request(pending.request)
        try:
            async with self._locks.setdefault(identity, asyncio.Lock()):
                await self._finish(pending)
        finally:
            self._leave(pending.request)

    async def _finish(self, pending: Pending) -> None:
        """As often as the database fails, or no name can be resolved."""
        wait_s, longest_s = AGAIN_S
        while True:
            try:
                await self._try(pending)
                await self._writer.delete(pending)
            except (StorageFailed, NotResolved) as error:
                log.error("a verification has to wait: %s", error)
                await asyncio.sleep(wait_s)
                wait_s = min(2 * wait_s, longest_s)
            else:
                return

    async def _try(self, pending: Pending) -> None:
        try:
            await self._carry_out(pending.mode, pending.request)
        except (StorageFailed, NotResolved):
            raise
        except WarrenError as error:
            # Nobody waits for it: the log is where its failure shows. What strangers ask for in
            # vain is no matter for whoever runs the hub.
            level = logging.INFO if pending.request.topic_url else logging.WARNING
            topic = pending.request.topic_url or pending.request.topic
            log.log(level, "the %s of topic '%s' failed: %s", pending.mode, topic, error)


def _host(request: SubscribeRequest) -> str:
    return urlsplit(request.callback or "").hostname or ""


def _take(counter: Counter[str], name: str) -> None:
    """Without a trace where none is left."""
    counter[name] -= 1
    if not counter[name]:
        del counter[name]
