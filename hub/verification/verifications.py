"""Requests that are answered with 202 and verified afterwards, durably.

Each is stored before the answer and deleted after its verification, so after a crash between them
it is verified again. Their number is limited in all, for each domain, for anonymous clients and
for each of these, because the owner of a callback may not have requested anything.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

from ...core.clock import Clock
from ...core.errors import WarrenError
from ..errors import NotResolved, StorageFailed, TooManyPending
from ..guard import domains
from ..guard.callback_url import read_callback
from ..guard.domains import owner_of
from ..keyed_locks import KeyedLocks
from ..lazy import Lazy
from ..requests import Mode, SubscribeRequest
from ..settings import HubSettings
from ..storage.group_commit import GroupCommit
from ..storage.storage import Storage
from ..subscriptions.subscription import identity_of_request
from ..subscriptions.websub import without_token
from ..tasks import Tasks

if TYPE_CHECKING:
    from .repository import PendingVerification, VerificationRepository

RETRY_S = (5.0, 300.0)
"""The first and the longest wait after a failed database or lookup; waits double."""
AEAD = "cryptography.hazmat.primitives.ciphers.aead"

log = logging.getLogger(__name__)

CarryOut = Callable[[Mode, SubscribeRequest], Awaitable[None]]


class _Change(NamedTuple):
    """A pending verification that is to be added, or deleted because it `is_over`."""

    pending: PendingVerification
    is_over: bool


class Verifications:
    """Stores requests and carries them out later.

    `carry_out` verifies a request and does what it demands, or raises a `WarrenError`.
    """

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
        self._changes: GroupCommit[_Change] = GroupCommit(
            self._commit, retries_alone=False, start=tasks.own
        )
        self._count = 0
        self._domains: Counter[str] = Counter()
        self._clients: Counter[str] = Counter()
        """How many requests each anonymous client has pending."""
        self._anonymous_count = 0
        self._identities: Counter[str] = Counter()
        self._locks: KeyedLocks[str] = KeyedLocks()

    async def start(self) -> None:
        """Carries out what was pending when the hub stopped."""
        if self._storage.is_empty():
            return
        found = await (await self._rows.get()).all()
        if found:
            await domains.load()
        for pending in found:
            self._enter(pending.request)
            self._begin(pending)

    def concern(self, request: SubscribeRequest) -> bool:
        """Returns whether anything is pending for the same subscription."""
        return identity_of_request(request) in self._identities

    async def accept(self, mode: Mode, request: SubscribeRequest) -> None:
        """Takes a request; durable when it returns. Raises `TooManyPending` and `StorageFailed`."""
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
        await self._changes.add(_Change(pending, is_over=False))
        return pending

    async def _commit(self, changes: list[_Change]) -> None:
        added = [change.pending for change in changes if not change.is_over]
        deleted = [change.pending for change in changes if change.is_over]
        await (await self._rows.get()).change(added, deleted)

    async def _open(self) -> VerificationRepository:
        database = await self._storage.database()
        # In a thread, because the import would block the event loop.
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
        _subtract(self._domains, _domain(request))
        if request.client:
            _subtract(self._clients, request.client)
            self._anonymous_count -= 1
        _subtract(self._identities, identity_of_request(request))

    def _begin(self, pending: PendingVerification) -> None:
        self._tasks.own(self._run(pending))

    async def _run(self, pending: PendingVerification) -> None:
        """Carries out a request, after earlier ones for the same subscription."""
        identity = identity_of_request(pending.request)
        try:
            async with self._locks.of(identity):
                await self._finish(pending)
        finally:
            self._leave(pending.request)

    async def _finish(self, pending: PendingVerification) -> None:
        """Carries out a request, repeatedly while the database or lookups fail."""
        wait_s, longest_s = RETRY_S
        while True:
            try:
                await self._try(pending)
                await self._changes.add(_Change(pending, is_over=True))
            except (StorageFailed, NotResolved) as error:
                log.error("verification postponed: %s", error)
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
            # No client waits, so the log alone shows the failure. Failed requests of anonymous
            # clients do not concern the operator.
            level = logging.INFO if pending.request.topic_url else logging.WARNING
            topic = without_token(pending.request.topic_url) or pending.request.topic
            log.log(level, "the %s of topic '%s' failed: %s", pending.mode, topic, error)


def _domain(request: SubscribeRequest) -> str:
    return owner_of(read_callback(request.callback or "").host)


def _require(count: int, limit: int, what: str, value: str | None = None) -> None:
    """Raises `TooManyPending` if the limit is reached."""
    if count >= limit:
        reason = "too many verifications are waiting; try again later"
        raise TooManyPending(reason, field="hub.callback", value=value, limit=f"{limit} {what}")


def _subtract(counter: Counter[str], name: str) -> None:
    """Counts one less, and drops the name at 0."""
    counter[name] -= 1
    if not counter[name]:
        del counter[name]
