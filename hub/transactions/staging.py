"""Staged rows: files below the data directory, one for each piece of a task's attempt.

They outlive a crash, so that a commit that comes after a restart finds them, and expire after
`lifetime_s`.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import NamedTuple, TypeVarTuple

from ...core.clock import Clock
from ..errors import HubError
from .staged_files import StagedFiles

logger = logging.getLogger(__name__)

Arguments = TypeVarTuple("Arguments")


class MissingPiece(HubError):
    """A piece of an attempt that is to be committed is not staged."""

    status = 409
    title = "Rows are not staged"


class StagedTransaction(NamedTuple):
    """A transaction: of a series in a virtual host, by its number there. The name of a series
    begins with its user's, up to a NUL."""

    vhost: str
    series: str
    number: int

    @property
    def folder(self) -> str:
        owner = _digest(self.series.partition("\0")[0])[:16]
        series = _digest(f"{self.vhost}\0{self.series}")
        return f"{owner}-{series}-{self.number}"


class StagedAttempt(NamedTuple):
    """An attempt at the rows of one partition, in so many pieces."""

    partition: int
    number: int
    pieces: int

    def each_piece(self) -> Iterator[Piece]:
        return (Piece(self.partition, self.number, index) for index in range(self.pieces))


class Piece(NamedTuple):
    """Some rows of an attempt, no more than fit one request."""

    partition: int
    attempt: int
    place: int

    @property
    def file(self) -> str:
        return f"{self.partition}-{self.attempt}-{self.place}"


class Staging:
    """The staged rows of all transactions. Raises `OSError` where the disk does.

    Files are changed by one thread, also for requests whose client has gone meanwhile.
    """

    def __init__(self, directory: Path, max_bytes: int, lifetime_s: float, clock: Clock) -> None:
        self._directory = directory
        self._files = StagedFiles(directory, max_bytes)
        self._lifetime_s = lifetime_s
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, "staging")

    async def start(self) -> None:
        """Counts what an earlier process has left."""
        await self._run(self._files.count)

    async def put(self, transaction: StagedTransaction, piece: Piece, data: bytes) -> None:
        """Stores a piece, on disk when it returns; replaces an earlier one.

        Raises `StagingFull`.
        """
        await self._run(self._files.put, transaction.folder, piece.file, data)

    async def read(self, transaction: StagedTransaction, piece: Piece) -> bytes:
        """Returns a piece. Raises `MissingPiece`."""
        path = self._directory / transaction.folder / piece.file
        try:
            return await asyncio.to_thread(path.read_bytes)
        except FileNotFoundError:
            raise _missing(piece) from None

    async def require(self, transaction: StagedTransaction, attempts: list[StagedAttempt]) -> None:
        """Raises `MissingPiece` unless all pieces of these attempts are staged."""
        folder = self._directory / transaction.folder
        await asyncio.to_thread(_require, folder, attempts)

    async def remove(self, transaction: StagedTransaction) -> None:
        """Removes everything that is staged for a transaction."""
        await self._run(self._files.remove, transaction.folder)

    async def watch(self) -> None:
        """Removes transactions whose time is over, without end."""
        while True:
            try:
                await self.expire()
            except OSError as error:
                logger.error("expired staged rows can't be removed: %s", error)
            await asyncio.sleep(min(60, self._lifetime_s))

    async def expire(self) -> None:
        """Removes transactions to which nothing was added for `lifetime_s`."""
        await self._run(self._files.remove_older, self._clock.wall_s() - self._lifetime_s)

    async def _run(self, function: Callable[[*Arguments], None], *arguments: *Arguments) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _missing(piece: Piece) -> MissingPiece:
    partition, attempt, place = piece
    return MissingPiece(
        f"piece {place} of attempt {attempt} of partition {partition} is not staged: it was never "
        "stored, or has expired; nothing was published",
        field="attempts", value=piece.file,
    )  # fmt: skip


def _require(folder: Path, attempts: list[StagedAttempt]) -> None:
    staged = {path.name for path in folder.iterdir()} if folder.exists() else set()
    for piece in chain.from_iterable(attempt.each_piece() for attempt in attempts):
        if piece.file not in staged:
            raise _missing(piece)
