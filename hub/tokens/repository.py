"""Tokens in SQL. Every method is one committed transaction, durable when it returns."""

from __future__ import annotations

import json
from collections.abc import Mapping

from sqlalchemy import delete, select, update

from ..storage.database import Database
from ..storage.tables import TokenRow
from .scope import read_scope
from .token import Token


class TokenRepository:
    """Reads and writes the table of tokens."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, token: Token) -> None:
        async with self._database.begin() as session:
            session.add(_to_row(token))

    async def delete(self, token_id: str) -> None:
        async with self._database.begin() as session:
            await session.execute(delete(TokenRow).where(TokenRow.id == token_id))

    async def all(self) -> list[tuple[Token, float | None]]:
        """Returns all tokens with the times of their last uses."""
        async with self._database.begin() as session:
            rows = await session.scalars(select(TokenRow).order_by(TokenRow.made_at))
            return [(_from_row(row), row.used_at) for row in rows]

    async def store_uses(self, uses: Mapping[str, float]) -> None:
        rows = [{"id": token_id, "used_at": at_s} for token_id, at_s in uses.items()]
        async with self._database.begin() as session:
            await session.execute(update(TokenRow), rows)


def _to_row(token: Token) -> TokenRow:
    return TokenRow(
        id=token.id,
        digest=token.digest,
        name=token.name,
        owner=token.owner,
        scopes=json.dumps([scope.document() for scope in token.scopes]),
        made_at=token.made_at,
        expires_at=token.expires_at,
    )


def _from_row(row: TokenRow) -> Token:
    return Token(
        id=row.id,
        digest=row.digest,
        name=row.name,
        owner=row.owner,
        scopes=tuple(map(read_scope, json.loads(row.scopes))),
        made_at=row.made_at,
        expires_at=row.expires_at,
    )
