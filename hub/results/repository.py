"""Results in SQL: a row for each job, group and hour, with its minutes."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import msgspec
from sqlalchemy import ColumnElement, Delete, Select, delete, select

from ..storage.database import Database
from ..storage.tables import PipelineResultRow
from .row import SHAPES, ResultRow, totals

_Place = tuple[str, str, int, str]
"""Job, virtual host, beginning of the hour, and the digest of the keys."""
_MINUTES = msgspec.json.Decoder(dict[int, list[float]])
_KEYS = msgspec.json.Decoder(tuple[str, ...])
_TOTALS = msgspec.json.Decoder(list[float])


@dataclass(frozen=True, slots=True)
class HourTotals:
    """The values of one group in one hour, in the order of its job's `Shape.values`."""

    at: int
    keys: tuple[str, ...]
    values: list[float]


class ResultRepository:
    """Reads and writes the table of results. Every method is one committed transaction, durable
    when it returns."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, vhost: str, rows: Sequence[ResultRow], keep: int) -> None:
        """Adds rows, each once: one that is there already, or is older than that, changes nothing.
        Of each job the `keep` newest hours of groups stay."""
        hours: dict[_Place, list[ResultRow]] = {}
        for row in rows:
            hours.setdefault((row.job, vhost, row.at, _digest(row.keys)), []).append(row)
        async with self._database.begin() as session:
            there = {_place(one): one for one in await session.scalars(_at(vhost, hours))}
            for place, added in hours.items():
                found = there.get(place)
                if found is None:
                    found = _new(place, added[0].keys)
                    session.add(found)
                _merge(found, added)
            await session.flush()
            for job in {row.job for row in rows}:
                await session.execute(_beyond(job, vhost, keep))

    async def find(self, job: str, vhost: str, start_s: int, end_s: int) -> list[HourTotals]:
        """Returns hours that begin at `start_s` or later and before `end_s`, the oldest first."""
        row = PipelineResultRow
        wanted = (
            select(row.at, row.keys, row.totals)
            .where(*_of(job, vhost), row.at >= start_s, row.at < end_s)
            .order_by(row.at)
        )
        async with self._database.begin() as session:
            found = (await session.execute(wanted)).all()
        return [
            HourTotals(at, _KEYS.decode(keys), _TOTALS.decode(sums)) for at, keys, sums in found
        ]

    async def delete_of(self, vhost: str) -> None:
        async with self._database.begin() as session:
            of_vhost = PipelineResultRow.vhost == vhost
            await session.execute(delete(PipelineResultRow).where(of_vhost))


def _at(vhost: str, places: Collection[_Place]) -> Select[PipelineResultRow]:
    """Selects the rows of these places, and maybe others."""
    row = PipelineResultRow
    jobs, _, hours, digests = zip(*places, strict=True)
    return select(row).where(
        row.job.in_(set(jobs)), row.vhost == vhost, row.at.in_(set(hours)),
        row.digest.in_(set(digests)),
    )  # fmt: skip


def _place(row: PipelineResultRow) -> _Place:
    return row.job, row.vhost, row.at, row.digest


def _new(place: _Place, keys: tuple[str, ...]) -> PipelineResultRow:
    job, vhost, at, digest = place
    return PipelineResultRow(
        job=job, vhost=vhost, at=at, digest=digest, keys=_text(keys), minutes="{}", totals=""
    )


def _merge(found: PipelineResultRow, added: Sequence[ResultRow]) -> None:
    """Puts rows into their hour, where they are newer than what it has of their minutes."""
    minutes = _MINUTES.decode(found.minutes)
    for row in added:
        before = minutes.get(row.minute)
        if before is None or before[0] <= row.offset:
            minutes[row.minute] = [row.offset, *row.values]
    found.minutes = _text(minutes)
    found.totals = _text(totals(SHAPES[found.job], minutes))


def _beyond(job: str, vhost: str, keep: int) -> Delete:
    """Deletes the oldest hours of a job that has more than `keep` rows."""
    of_job = _of(job, vhost)
    at = PipelineResultRow.at
    first = select(at).where(*of_job).order_by(at.desc()).offset(keep).limit(1)
    return delete(PipelineResultRow).where(*of_job, at <= first.scalar_subquery())


def _of(job: str, vhost: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return PipelineResultRow.job == job, PipelineResultRow.vhost == vhost


def _digest(keys: tuple[str, ...]) -> str:
    """Returns a digest of the keys, which may be too long for an index."""
    return hashlib.sha256(_text(keys).encode()).hexdigest()[:32]


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()
