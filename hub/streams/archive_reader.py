"""Reads from a stream's archives the messages that retention has dropped from the log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec

from ..engine.port import StreamRead, StreamState
from ..keyed_locks import KeyedLocks
from ..pipeline.archive_chunks import ArchiveAnswer, Question
from ..pipeline.archived import ArchivedStream, ArchiveFolder
from ..pipeline.errors import OutputError
from ..processes.starter import ProcessStarter
from .errors import ArchiveUnreadable, StreamAgedOut
from .finding import FoundStream

TIME_LIMIT_S: Final = 60.0
SEARCHES_MAX: Final = 2
"""Processes that search for times at once, for all streams."""
_PROGRAM: Final = Question.__module__


class ArchiveReader:
    """Reads archives below one directory, none if it is empty. A stream's is read by one process at
    a time."""

    def __init__(self, starter: ProcessStarter, top: str) -> None:
        self._starter = starter
        self._top = top
        self._locks: KeyedLocks[str] = KeyedLocks()
        self._searches = asyncio.Semaphore(SEARCHES_MAX)

    async def first_offset(self, found: FoundStream) -> int | None:
        """Returns the first offset from which on archives and the log have all messages, as far as
        the archives say; None if there is no archive that can be read."""
        return await self._search(found, _first_offset)

    async def limit(self, found: FoundStream, start: int, limit_bytes: int) -> int | None:
        """Returns an offset behind `start` such that archives have about `limit_bytes` to it, None
        if none has `start`."""
        return await self._search(found, lambda folder, _: folder.limit(start, limit_bytes))

    async def _search(
        self, found: FoundStream, search: Callable[[ArchiveFolder, int], int | None]
    ) -> int | None:
        """Returns the least result of the archives that go on to where the log begins."""
        state = found.state()
        places = self._places(found, state.first)
        if not places:
            return None
        return await asyncio.to_thread(
            _least, self._top, places, _wanted(found, state), state.first, search
        )

    async def find_moment(self, found: FoundStream, wall_ms: int) -> int | None:
        """Returns the offset of the first message before the log that arrived at `wall_ms` or
        later; None if there is none, or no archive that can be read and goes on to where the log
        begins. Raises `ArchiveUnreadable`."""
        state = found.state()
        places = self._places(found, state.first)
        if not places or state.first == 0:
            return None
        question = Question(
            self._top, places, _wanted(found, state), state.id, 0, state.first, 0, wall_ms
        )
        async with self._searches:
            line = await self._ask(found, question)
        answer = msgspec.json.decode(line.partition(b"\n")[0], type=ArchiveAnswer)
        if answer.is_broken:
            raise _unreadable(found, answer.reason)
        return answer.at

    async def read(
        self, found: FoundStream, start: int, end: int | None, limit_bytes: int,
        dropped: StreamAgedOut,
    ) -> StreamRead:  # fmt: skip
        """Returns chunks with messages that retention has dropped from the log.

        Raises `StreamAgedOut`, which says why too, if there is no archive that has them, and
        `ArchiveUnreadable`.
        """
        state = found.state()
        end = state.first if end is None else min(end, state.first)
        places = self._places(found, start)
        if not places:
            raise _aged_out(
                found, start, dropped, "no archive that can be read (setting archives) has it"
            )
        if start >= end:
            return StreamRead(start, start)
        question = Question(
            self._top, places, _wanted(found, state), state.id, start, end, limit_bytes
        )
        async with self._locks.of(state.incarnation):
            line, _, data = (await self._ask(found, question)).partition(b"\n")
        answer = msgspec.json.decode(line, type=ArchiveAnswer)
        if answer.is_broken:
            raise _unreadable(found, answer.reason)
        if not answer.count:
            raise _aged_out(found, start, dropped, answer.reason)
        return StreamRead(start, start + answer.count, (data,), checksum=answer.checksum)

    async def _ask(self, found: FoundStream, question: Question) -> bytes:
        """Returns the output of the program. Raises `ArchiveUnreadable`."""
        try:
            process = await self._starter.start(_PROGRAM)
        except OSError as error:
            raise _unreadable(found, f"no process can be started to read it: {error}") from error
        try:
            async with asyncio.timeout(TIME_LIMIT_S):
                output = await process.communicate(msgspec.json.encode(question))
        except TimeoutError:
            raise _unreadable(found, f"it was not read in {TIME_LIMIT_S:.0f} s") from None
        finally:
            process.kill()
            await process.wait()
        if process.returncode:
            raise _unreadable(found, f"the process that reads it ended with {process.returncode}")
        return output

    def _places(self, found: FoundStream, offset: int) -> list[str]:
        """Returns where the archives are that have come behind this offset or up to it."""
        if not self._top:
            return []
        reports = found.stream.archives().reports.values()
        return [report.manifest for report in reports if report.offset >= offset]


def _wanted(found: FoundStream, state: StreamState) -> ArchivedStream:
    return ArchivedStream(found.vhost, found.name, state.incarnation)


def _first_offset(folder: ArchiveFolder, first: int) -> int | None:
    return folder.first_offset if folder.next_offset >= first else None


def _least(
    top: str, places: list[str], wanted: ArchivedStream, first: int,
    search: Callable[[ArchiveFolder, int], int | None],
) -> int | None:  # fmt: skip
    offsets = []
    for place in places:
        try:
            offset = search(ArchiveFolder(top, place, wanted), first)
        except (OutputError, OSError):
            continue  # Whoever reads it is told why.
        if offset is not None:
            offsets.append(offset)
    return min(offsets, default=None)


def _unreadable(found: FoundStream, reason: str) -> ArchiveUnreadable:
    return ArchiveUnreadable(f"the archive of {found} can't be read: {reason}", field="start")


def _aged_out(found: FoundStream, start: int, dropped: StreamAgedOut, reason: str) -> StreamAgedOut:
    """Returns the error with the places of the archives that have the message, as they report."""
    reports = found.stream.archives().reports.values()
    manifests = [one.manifest for one in reports if one.manifest and one.offset > start]
    place = f"; archives report that it is in {', '.join(manifests)}" if manifests else ""
    return StreamAgedOut(
        f"{dropped.reason}; {reason}{place}", field=dropped.field, value=dropped.value,
        limit=dropped.limit, members={**dropped.members, "manifests": manifests},
    )  # fmt: skip
