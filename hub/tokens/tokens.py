"""Makes tokens, finds them by their secret, and revokes them.

A secret has 256 random bits, so an unsalted digest is enough to store and find it.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import secrets
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ...core.clock import Clock
from ...core.errors import WarrenError, access_refused
from ..errors import BadRequest
from ..owner_rights import SubscriberRights
from ..storage.storage import Storage
from ..tasks import Tasks
from .errors import TooManyTokens
from .scope import AnyScope, read_scope
from .token import Token
from .uses import TokenUses

if TYPE_CHECKING:
    from .repository import TokenRepository

PREFIX: Final = "warren_"
"""Lets scanners of published code recognise a secret."""
SECRET_BYTES: Final = 32
MAX_PER_USER: Final = 100
"""Tokens that are valid at a time; a page asks its own server for one, and can share it."""
MAX_SCOPES: Final = 20
MAX_NAME_CHARACTERS: Final = 200
EXPIRES_IN_S: Final = 3_600
MAX_EXPIRES_IN_S: Final = 365 * 86_400
STORE_USES_S: Final = 300

log = logging.getLogger(__name__)


class AccessTokens:
    """All tokens, in memory and in the database.

    `on_end` is called with each token that ends before its time.
    """

    def __init__(
        self, storage: Storage, clock: Clock, tasks: Tasks, rights: SubscriberRights
    ) -> None:
        self._storage = storage
        self._clock = clock
        self._tasks = tasks
        self._rights = rights
        self._by_digest: dict[str, Token] = {}
        self._by_id: dict[str, Token] = {}
        self.uses = TokenUses()
        self.on_end: Callable[[Token], None] = lambda token: None

    async def start(self) -> None:
        """Loads what is stored, and deletes what has expired or has lost its owner."""
        if self._storage.is_empty():
            return
        repository = await self._repository()
        for token, used_at in await repository.all():
            if token.is_over(self._clock.wall_s()) or self._rights.owner_refusal(token.owner):
                await repository.delete(token.id)
            else:
                self._enter(token)
                self.uses.load(token.id, used_at)

    async def watch(self) -> None:
        """Stores now and then when tokens were last used."""
        while True:
            await asyncio.sleep(STORE_USES_S)
            try:
                await self.uses.store(self._store_uses)
            except WarrenError as error:
                log.warning("the last uses of tokens wait to be stored: %s", error)

    async def _store_uses(self, uses: Mapping[str, float]) -> None:
        await (await self._repository()).store_uses(uses)

    async def make(
        self,
        name: str,
        owner: str,
        scopes: Sequence[AnyScope],
        expires_in_s: int = EXPIRES_IN_S,
    ) -> tuple[Token, str]:
        """Makes a token; returns it with its secret, which is not stored.

        Durable when it returns. Raises `BadRequest`, `TooManyTokens`, `StorageFailed`, and
        `ChannelError` 403 if it was revoked meanwhile.
        """
        _check(name, scopes, expires_in_s)
        await self._make_room(owner)
        secret = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
        now_s = self._clock.wall_s()
        token = Token(
            id=uuid.uuid4().hex,
            digest=_digest(secret),
            name=name,
            owner=owner,
            scopes=tuple(scopes),
            made_at=now_s,
            expires_at=now_s + expires_in_s,
        )
        self._enter(token)  # before it is stored: it ends with its owner from now on
        try:
            await (await self._repository()).add(token)
        except BaseException:
            self._forget(token)
            raise
        if token.id not in self._by_id:
            await self.revoke(token)
            raise access_refused("the owner of the token, or its virtual host, was deleted")
        return token, secret

    async def _make_room(self, owner: str) -> None:
        """Deletes the owner's expired tokens; raises `TooManyTokens` if too many are valid."""
        now_s = self._clock.wall_s()
        own = [token for token in self._by_id.values() if token.owner == owner]
        over = [token for token in own if token.is_over(now_s)]
        if len(own) - len(over) >= MAX_PER_USER:
            raise TooManyTokens(
                f"user '{owner}' has {len(own) - len(over)} tokens that are valid; revoke some, or "
                f"wait until they expire",
                field="tokens", limit=str(MAX_PER_USER),
            )  # fmt: skip
        for token in over:
            await self.revoke(token)

    def find(self, secret: str) -> Token | None:
        """Returns the token with this secret, which is used now; None if it is unknown, revoked or
        expired."""
        digest = _digest(secret)
        found = self._by_digest.get(digest)
        if found is None or not hmac.compare_digest(found.digest, digest):
            return None
        now_s = self._clock.wall_s()
        if found.is_over(now_s):
            return None
        self.uses.note(found.id, now_s)
        return found

    def get(self, token_id: str) -> Token | None:
        return self._by_id.get(token_id)

    def all(self) -> list[Token]:
        """Returns the valid tokens."""
        now_s = self._clock.wall_s()
        return [token for token in self._by_id.values() if not token.is_over(now_s)]

    def lasts_s(self, token: Token) -> float:
        return token.expires_at - self._clock.wall_s()

    async def revoke(self, token: Token) -> None:
        """Revokes a token, durably when it returns. After `StorageFailed` it is still valid."""
        await (await self._repository()).delete(token.id)
        self._forget(token)

    def forget_vhost(self, vhost: str) -> None:
        """Revokes the tokens with a scope in a deleted virtual host: there may be another one of
        that name later."""
        self._revoke_all(lambda token: token.has_vhost(vhost))

    def forget_owner(self, owner: str) -> None:
        """Revokes the tokens of a deleted user."""
        self._revoke_all(lambda token: token.owner == owner)

    def _revoke_all(self, is_over: Callable[[Token], bool]) -> None:
        """Revokes tokens at once; the rows are deleted soon."""
        for token in filter(is_over, list(self._by_id.values())):
            self._forget(token)
            self._tasks.own(self._delete(token))

    async def _delete(self, token: Token) -> None:
        try:
            await (await self._repository()).delete(token.id)
        except WarrenError as error:
            log.error("token %s can't be deleted: %s", token.id, error)

    def _enter(self, token: Token) -> None:
        self._by_digest[token.digest] = token
        self._by_id[token.id] = token

    def _forget(self, token: Token) -> None:
        self._by_digest.pop(token.digest, None)
        self._by_id.pop(token.id, None)
        self.uses.forget(token.id)
        self.on_end(token)

    async def _repository(self) -> TokenRepository:
        database = await self._storage.database()
        from .repository import TokenRepository

        return TokenRepository(database)


def read_scopes(given: Any) -> list[AnyScope]:
    """Reads a list of scopes. Raises `BadRequest`."""
    if not isinstance(given, list) or not 1 <= len(given) <= MAX_SCOPES:
        raise BadRequest("is no list of scopes", field="scopes", limit=f"1 to {MAX_SCOPES} scopes")
    return list(dict.fromkeys(map(read_scope, given)))


def _check(name: str, scopes: Sequence[AnyScope], expires_in_s: int) -> None:
    if not scopes:
        raise BadRequest("is empty", field="scopes", limit=f"1 to {MAX_SCOPES} scopes")
    if not 1 <= expires_in_s <= MAX_EXPIRES_IN_S:
        raise BadRequest(
            "is out of range",
            field="expires_in_s",
            value=str(expires_in_s),
            limit=f"1 to {MAX_EXPIRES_IN_S}",
        )
    if len(name) > MAX_NAME_CHARACTERS or "\0" in name:
        raise BadRequest(
            f"has {len(name)} characters, or a NUL",
            field="name",
            value=name,
            limit=f"{MAX_NAME_CHARACTERS} characters",
        )


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogateescape")).hexdigest()
