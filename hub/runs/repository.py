"""Runs in SQL. Every method is one committed transaction, durable when it returns."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import ColumnElement, delete, select

from ..storage.database import Database
from ..storage.tables import PipelineRunRow
from .run import Run, RunReport, RunState

_Key = tuple[str, str]


class RunRepository:
    """Reads and writes the table of runs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, run: Run, keep: int) -> None:
        """Stores a run, new or not, and deletes all but the `keep` newest of its owner."""
        async with self._database.begin() as session:
            await session.merge(_to_row(run))
            newest = (
                select(PipelineRunRow.job, PipelineRunRow.name)
                .where(PipelineRunRow.owner == run.owner)
                .order_by(PipelineRunRow.updated_at.desc())
                .offset(keep)
            )
            for job, name in (await session.execute(newest)).all():
                await session.execute(delete(PipelineRunRow).where(*_is((job, name))))

    async def get(self, key: _Key) -> Run | None:
        async with self._database.begin() as session:
            row = await session.get(PipelineRunRow, key)
            return None if row is None else _from_row(row)

    async def all(self) -> list[Run]:
        """Returns all runs, those first that were updated last."""
        async with self._database.begin() as session:
            newest = select(PipelineRunRow).order_by(PipelineRunRow.updated_at.desc())
            return [_from_row(row) for row in await session.scalars(newest)]

    async def delete(self, key: _Key) -> None:
        async with self._database.begin() as session:
            await session.execute(delete(PipelineRunRow).where(*_is(key)))

    async def delete_of(self, *, vhost: str | None = None, owners: Collection[str] = ()) -> None:
        """Deletes the runs of a virtual host, and those of these owners."""
        async with self._database.begin() as session:
            if vhost is not None:
                await session.execute(delete(PipelineRunRow).where(PipelineRunRow.vhost == vhost))
            for owner in owners:
                await session.execute(delete(PipelineRunRow).where(PipelineRunRow.owner == owner))


def _is(key: _Key) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return PipelineRunRow.job == key[0], PipelineRunRow.name == key[1]


def _to_row(run: Run) -> PipelineRunRow:
    report = run.report
    return PipelineRunRow(
        job=run.job,
        name=run.name,
        vhost=run.vhost,
        stream=run.stream,
        owner=run.owner,
        state=report.state.value,
        rows=report.rows,
        lag=report.lag,
        dropped=report.dropped,
        error=report.error,
        started_at=run.started_at,
        updated_at=run.updated_at,
    )


def _from_row(row: PipelineRunRow) -> Run:
    report = RunReport(RunState(row.state), row.rows, row.lag, row.error, row.dropped)
    return Run(
        row.job, row.name, row.vhost, row.stream, row.owner, report, row.started_at,
        row.updated_at,
    )  # fmt: skip
