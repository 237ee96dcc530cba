"""Requests that are answered with 202 and verified afterwards: none of them is forgotten.

Each is stored before the answer and deleted when its verification is over, so that a crash in
between asks again. They are bounded: in all, for each domain, for anonymous clients and for
each of them, as whoever asks need not be the one who is asked.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from ...core.clock import Clock
from ...core.errors import WarrenError
from ..errors import NotResolved, StorageFailed, TooManyPending
from ..guard import domains
from ..guard.domains import owner_of
from ..guard.guard import read_callback
from ..lazy import Lazy
from ..requests import Mode, SubscribeRequest
from ..settings import HubSettings
from ..storage.storage import Storage
from ..subscriptions.subscription import identity_of_request
from ..tasks import Tasks
from .writer import VerificationWriter

if TYPE_CHECKING:
    from .repository import PendingVerification, VerificationRepository

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
        self._domains: Counter[str] = Counter()
        self._clients: Counter[str] = Counter()
        """Requests of anonymous clients."""
        self._anonymous_count = 0
        self._identities: Counter[str] = Counter()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def start(self) -> None:
        """Asks again what was pending when the hub stopped."""
        if self._storage.is_empty():
            return
        left = await (await self._rows.get()).all()
        if left:
            await domains.load()
        for pending in left:
            self._enter(pending.request)
            self._begin(pending)

    def concern(self, request: SubscribeRequest) -> bool:
        """Whether anything is pending for the same subscription."""
        return identity_of_request(request) in self._identities

    async def accept(self, mode: Mode, request: SubscribeRequest) -> None:
        """Durable when it returns. Raises `TooManyPending` and `StorageFailed`."""
        await self._rows.get()
        await domains.load()
        self._require_room(request)
        self._enter(request)
        try:
            pending = await self._store(mode, request)
        except BaseException:
            self._leave(request)
            raise
        self._begin(pending)

    async def _store(self, mode: Mode, request: SubscribeRequest) -> PendingVerification:
        from .repository import PendingVerification

        pending = PendingVerification(uuid.uuid4().hex, mode, request, self._clock.wall_s())
        await self._writer.add(pending)
        return pending

    async def _open(self) -> VerificationRepository:
        database = await self._storage.database()
        # In a thread, for the broker must not stand still while it is imported.
        await asyncio.to_thread(importlib.import_module, AEAD)
        from .repository import VerificationRepository

        return VerificationRepository(database, self._storage.sealer)

    def _require_room(self, request: SubscribeRequest) -> None:
        settings, domain, client = self._settings, _domain(request), request.client
        _require(self._domains[domain], settings.max_pending_per_domain, "for one domain", domain)
        _require(self._count, settings.max_pending_verifications, "in all")
        if client:
            _require(self._clients[client], settings.max_pending_per_client, "for one client")
            _require(self._anonymous_count, settings.max_pending_anonymous, "without credentials")

    def _enter(self, request: SubscribeRequest) -> None:
        self._count += 1
        self._domains[_domain(request)] += 1
        if request.client:
            self._clients[request.client] += 1
            self._anonymous_count += 1
        self._identities[identity_of_request(request)] += 1

    def _leave(self, request: SubscribeRequest) -> None:
        self._count -= 1
        _take(self._domains, _domain(request))
        if request.client:
            _take(self._clients, request.client)
            self._anonymous_count -= 1
        _take(self._identities, identity_of_request(request))

    def _begin(self, pending: PendingVerification) -> None:
        self._tasks.own(self._run(pending))

    async def _run(self, pending: PendingVerification) -> None:
        """In the order in which they came, where they are about the same subscription."""
        identity = identity_of_request(pending.request)
        try:
            async with self._locks.setdefault(identity, asyncio.Lock()):
                await self._finish(pending)
        finally:
            self._leave(pending.request)

    async def _finish(self, pending: PendingVerification) -> None:
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

    async def _try(self, pending: PendingVerification) -> None:
        try:
            await self._carry_out(pending.mode, pending.request)
        except (StorageFailed, NotResolved):
            raise
        except WarrenError as error:
            # Nobody waits for it: its failure shows in the log alone. Failed requests of anonymous
            # clients do not concern the operator.
            level = logging.INFO if pending.request.topic_url else logging.WARNING
            topic = pending.request.topic_url or pending.request.topic
            log.log(level, "the %s of topic '%s' failed: %s", pending.mode, topic, error)


def _domain(request: SubscribeRequest) -> str:
    return owner_of(read_callback(request.callback or "").host)


def _require(count: int, limit: int, what: str, value: str | None = None) -> None:
    """Raises `TooManyPending`."""
    if count >= limit:
        reason = "too many verifications are waiting; try again later"
        raise TooManyPending(reason, field="hub.callback", value=value, limit=f"{limit} {what}")


def _take(counter: Counter[str], name: str) -> None:
    """Without a trace where none is left."""
    counter[name] -= 1
    if not counter[name]:
        del counter[name]
