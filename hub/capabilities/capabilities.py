"""Makes capabilities, finds them by their secret, and revokes them.

A secret has 256 random bits, so an unsalted digest is enough to store and find it.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...core.clock import Clock
from ...core.errors import WarrenError, access_refused
from ..errors import BadRequest
from ..owner_rights import SubscriberRights
from ..requests import Resource
from ..storage.storage import Storage
from ..tasks import Tasks
from .capability import Capability

if TYPE_CHECKING:
    from .repository import CapabilityRepository

SECRET_BYTES = 32
MAX_NOTE_CHARACTERS = 1_000
MAX_KEY_BYTES = 255  # an AMQP short string
MAX_EXPIRES_IN_S = 10 * 365 * 86_400

log = logging.getLogger(__name__)


class Capabilities:
    """All capabilities, in memory and in the database."""

    def __init__(
        self, storage: Storage, clock: Clock, tasks: Tasks, rights: SubscriberRights
    ) -> None:
        self._storage = storage
        self._clock = clock
        self._tasks = tasks
        self._rights = rights
        self._by_digest: dict[str, Capability] = {}
        self._by_id: dict[str, Capability] = {}

    async def start(self) -> None:
        """Loads what is stored, and deletes what has expired or has lost its owner."""
        if self._storage.is_empty():
            return
        repository = await self._repository()
        for capability in await repository.all():
            is_over = capability.is_over(self._clock.wall_s())
            if is_over or self._rights.owner_refusal(capability.owner):
                await repository.delete(capability.id)
            else:
                self._enter(capability)

    async def make(
        self,
        resource: Resource,
        owner: str,
        *,
        expires_in_s: int | None = None,
        routing_key: str | None = None,
        note: str = "",
    ) -> tuple[Capability, str]:
        """Makes a capability; returns it with its secret, which is not stored.

        Durable when it returns. The caller has checked that the owner may write to the resource.
        Raises `BadRequest`, `StorageFailed`, and `ChannelError` 403 if it was revoked meanwhile.
        """
        _check(expires_in_s, routing_key, note)
        secret = secrets.token_urlsafe(SECRET_BYTES)
        now_s = self._clock.wall_s()
        capability = Capability(
            id=uuid.uuid4().hex,
            digest=_digest(secret),
            resource=resource,
            owner=owner,
            made_at=now_s,
            expires_at=None if expires_in_s is None else now_s + expires_in_s,
            routing_key=routing_key,
            note=note,
        )
        self._enter(capability)  # before it is stored: it ends with its owner from now on
        try:
            await (await self._repository()).add(capability)
        except BaseException:
            self._drop(capability)
            raise
        if capability.digest not in self._by_digest:
            await self.revoke(capability)
            raise access_refused("the owner of the URL, or its virtual host, was deleted")
        return capability, secret

    def find(self, secret: str) -> Capability | None:
        """Returns the capability with this secret, None if it is unknown, revoked or expired."""
        found = self._by_digest.get(_digest(secret))
        return None if found is None or found.is_over(self._clock.wall_s()) else found

    def get(self, capability_id: str) -> Capability | None:
        return self._by_id.get(capability_id)

    def all(self) -> list[Capability]:
        """Returns all capabilities; expired ones are among them until the next start."""
        return list(self._by_id.values())

    async def revoke(self, capability: Capability) -> None:
        """Revokes a capability, durably when it returns. After `StorageFailed` it is still
        valid."""
        await (await self._repository()).delete(capability.id)
        self._drop(capability)

    def forget_vhost(self, vhost: str) -> None:
        """Revokes the capabilities for a deleted virtual host."""
        self._forget_all(lambda capability: capability.resource.vhost == vhost)

    def forget_owner(self, owner: str) -> None:
        """Revokes the capabilities of a deleted user."""
        self._forget_all(lambda capability: capability.owner == owner)

    def _forget_all(self, is_over: Callable[[Capability], bool]) -> None:
        """Revokes capabilities at once; the rows are deleted soon."""
        for capability in filter(is_over, self.all()):
            self._by_digest.pop(capability.digest, None)
            self._tasks.own(self._forget(capability))

    async def _forget(self, capability: Capability) -> None:
        try:
            await self.revoke(capability)
        except WarrenError as error:
            log.error("capability %s can't be revoked: %s", capability.id, error)

    def _enter(self, capability: Capability) -> None:
        self._by_digest[capability.digest] = capability
        self._by_id[capability.id] = capability

    def _drop(self, capability: Capability) -> None:
        self._by_digest.pop(capability.digest, None)
        self._by_id.pop(capability.id, None)

    async def _repository(self) -> CapabilityRepository:
        database = await self._storage.database()
        from .repository import CapabilityRepository

        return CapabilityRepository(database)


def _check(expires_in_s: int | None, routing_key: str | None, note: str) -> None:
    if expires_in_s is not None and not 1 <= expires_in_s <= MAX_EXPIRES_IN_S:
        raise BadRequest(
            "is out of range",
            field="expires_in_s",
            value=str(expires_in_s),
            limit=f"1 to {MAX_EXPIRES_IN_S}",
        )
    if routing_key is not None:
        check_text("routing_key", routing_key, MAX_KEY_BYTES)
    check_text("note", note, MAX_NOTE_CHARACTERS)


def check_text(field: str, text: str, max_bytes: int) -> None:
    """Raises `BadRequest` for a text that is too long, or has a NUL, which PostgreSQL refuses."""
    size = len(text.encode())
    if size > max_bytes:
        raise BadRequest(
            f"is {size} bytes long", field=field, value=text, limit=f"{max_bytes} bytes"
        )
    if "\0" in text:
        raise BadRequest("must not contain NUL", field=field, value=text)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogateescape")).hexdigest()
