"""Outputs, their tokens and marks in SQL. Every method is one committed transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, delete, select, update

from ..storage.database import Database
from ..storage.tables import OutputMarkRow, OutputRow, OutputTokenRow
from .definition import Definition
from .output import Output, OutputBinding, OutputKey, OutputToken, StreamPosition

MARKS_KEPT = 10_000
"""Near-duplicates that are remembered of each output; older ones have left it long ago."""
ROWS_AT_ONCE = 500  # in one statement: both databases bound its parameters


class OutputRepository:
    """Reads and writes the tables of outputs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, output: Output) -> None:
        async with self._database.begin() as session:
            await session.merge(_to_row(output))

    async def all(self) -> list[Output]:
        """Returns all outputs, removed ones too."""
        async with self._database.begin() as session:
            return [_from_row(row) for row in await session.scalars(select(OutputRow))]

    async def put_offsets(self, key: OutputKey, offsets: dict[str, StreamPosition]) -> None:
        async with self._database.begin() as session:
            row = update(OutputRow).where(OutputRow.vhost == key.vhost, OutputRow.name == key.name)
            await session.execute(row.values(offsets=_text(offsets)))

    async def delete(self, key: OutputKey) -> None:
        """Deletes the row, so that nobody knows any more that there was such an output."""
        async with self._database.begin() as session:
            row = (OutputRow.vhost == key.vhost, OutputRow.name == key.name)
            await session.execute(delete(OutputRow).where(*row))

    async def forget_contents(self, key: OutputKey) -> None:
        """Deletes its tokens and marks."""
        async with self._database.begin() as session:
            of_token = (OutputTokenRow.vhost == key.vhost, OutputTokenRow.output == key.name)
            await session.execute(delete(OutputTokenRow).where(*of_token))
            await session.execute(delete(OutputMarkRow).where(*_marks_of(key)))

    # -- tokens

    async def add_token(self, token: OutputToken) -> None:
        async with self._database.begin() as session:
            session.add(
                OutputTokenRow(
                    id=token.id,
                    digest=token.digest,
                    vhost=token.output.vhost,
                    output=token.output.name,
                    name=token.name,
                    made_at=token.made_at,
                )
            )

    async def delete_token(self, token_id: str) -> None:
        async with self._database.begin() as session:
            await session.execute(delete(OutputTokenRow).where(OutputTokenRow.id == token_id))

    async def tokens(self) -> list[OutputToken]:
        async with self._database.begin() as session:
            rows = await session.scalars(select(OutputTokenRow).order_by(OutputTokenRow.made_at))
            return [
                OutputToken(
                    row.id, row.digest, OutputKey(row.vhost, row.output), row.name, row.made_at
                )
                for row in rows
            ]

    # -- marks

    async def mark(self, key: OutputKey, item_ids: Iterable[str]) -> None:
        """Remembers near-duplicates, and forgets the oldest ones."""
        digests = dict.fromkeys(map(_digest, item_ids))
        known = await self._marked_digests(key, digests)
        async with self._database.begin() as session:
            session.add_all(
                OutputMarkRow(vhost=key.vhost, output=key.name, digest=digest)
                for digest in digests
                if digest not in known
            )
            await session.flush()
            newest = select(OutputMarkRow.id).where(*_marks_of(key))
            last = newest.order_by(OutputMarkRow.id.desc()).offset(MARKS_KEPT).limit(1)
            too_old = await session.scalar(last)
            if too_old is not None:
                of_old = (*_marks_of(key), OutputMarkRow.id <= too_old)
                await session.execute(delete(OutputMarkRow).where(*of_old))

    async def marked(self, key: OutputKey, item_ids: Collection[str]) -> set[str]:
        """Returns those of the ids that are remembered as near-duplicates."""
        found = await self._marked_digests(key, list(map(_digest, item_ids)))
        return {item_id for item_id in item_ids if _digest(item_id) in found}

    async def _marked_digests(self, key: OutputKey, digests: Collection[str]) -> set[str]:
        found: set[str] = set()
        for some in _pieces(list(digests)):
            async with self._database.begin() as session:
                of_some = (*_marks_of(key), OutputMarkRow.digest.in_(some))
                found.update(await session.scalars(select(OutputMarkRow.digest).where(*of_some)))
        return found


def _marks_of(key: OutputKey) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return OutputMarkRow.vhost == key.vhost, OutputMarkRow.output == key.name


def _pieces(found: Sequence[str]) -> list[Sequence[str]]:
    return [found[start : start + ROWS_AT_ONCE] for start in range(0, len(found), ROWS_AT_ONCE)]


def _digest(item_id: str) -> str:
    return hashlib.sha256(item_id.encode(errors="surrogatepass")).hexdigest()


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _to_row(output: Output) -> OutputRow:
    return OutputRow(
        vhost=output.key.vhost,
        name=output.key.name,
        owner=output.owner,
        definition=_text(output.definition),
        bound=_text(sorted(output.bound)),
        offsets=_text(output.offsets),
        made_at=output.made_at,
        changed_at=output.changed_at,
        removed_at=output.removed_at,
    )


def _from_row(row: OutputRow) -> Output:
    return Output(
        OutputKey(row.vhost, row.name),
        row.owner,
        msgspec.json.decode(row.definition, type=Definition),
        row.made_at,
        row.changed_at,
        msgspec.json.decode(row.bound, type=frozenset[OutputBinding]),
        msgspec.json.decode(row.offsets, type=dict[str, StreamPosition]),
        row.removed_at,
    )
