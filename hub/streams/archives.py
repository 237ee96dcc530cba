"""The archives of streams: how far each has come, and what is kept for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..engine.port import ArchiveReport, Engine, Stream, StreamState
from ..errors import BadRequest, HubError
from ..requests import Kind
from .errors import StreamRecreated
from .finding import FoundStream

MAX_NAME_BYTES = 255
MAX_MANIFEST_BYTES = 4_096


class ArchiveAhead(HubError):
    """The archive has reported messages that the stream does not have yet."""

    status = 409
    title = "Archive ahead of the stream"


class ArchiveMissing(HubError):
    """No archive of this name has reported."""

    status = 404
    title = "Not found"


class NotStored(HubError):
    """The disk is full."""

    status = 507
    title = "Low on disk"
    retry_after_s = 30


@dataclass(frozen=True, slots=True)
class Archive:
    """An archive of a stream. `report` is None for one that the stream's policy names and that has
    not reported yet, `exceeded` the limit that the stream exceeds because of it."""

    stream: FoundStream
    name: str
    state: StreamState
    report: ArchiveReport | None
    is_waited_for: bool
    exceeded: str | None

    @property
    def lag(self) -> int:
        """The number of messages that are not archived yet, as far as the stream still has them."""
        archived = self.state.first if self.report is None else self.report.offset
        return self.state.next_offset - max(self.state.first, archived)

    @property
    def bytes_behind(self) -> int | None:
        """The size of these messages in bytes, roughly; None if that is not known yet."""
        size, count = self.state.size_bytes, self.state.next_offset - self.state.first
        return None if size is None else size * self.lag // max(1, count)


class ArchiveRegistry:
    """The archives of an engine's streams."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def put(
        self, found: FoundStream, name: str, offset: int, manifest: str, incarnation: str | None
    ) -> bool:
        """Stores that an archive has all messages before `offset`, durably when it returns; True
        for its first report. Retention may drop these messages from then on.

        Raises `BadRequest`, `StreamMissing`, `StreamRecreated`, `ArchiveAhead`, `NotStored`, and
        `ChannelError` 406 for one archive too many.
        """
        _check(name, manifest, offset)
        state = found.state()
        if incarnation is not None and incarnation != state.incarnation:
            raise StreamRecreated(
                f"{found} is incarnation {state.incarnation}, not {incarnation}: it was deleted "
                "and declared again, so the archive is that of other messages; start a new archive",
                field="incarnation", value=incarnation, limit=state.incarnation,
                members={"incarnation": state.incarnation},
            )  # fmt: skip
        if offset > state.next_offset:
            raise ArchiveAhead(
                f"archive '{name}' reports all messages before {offset}, and {found} ends at "
                f"{state.next_offset}: the archive is that of another stream",
                field="offset", value=str(offset), limit=str(state.next_offset),
            )  # fmt: skip
        is_new = name not in found.stream.archives().reports
        _require_kept(await found.stream.report_archive(name, offset, manifest))
        return is_new

    async def remove(self, found: FoundStream, name: str) -> None:
        """Forgets an archive. What a policy has kept for it is kept until the policy changes.

        Raises `ArchiveMissing` and `NotStored`.
        """
        if name not in found.stream.archives().reports:
            raise ArchiveMissing(
                f"no archive '{name}' of {found} has reported", field="archive", value=name
            )
        _require_kept(await found.stream.forget_archive(name))

    def all(self, vhost: str) -> Iterator[Archive]:
        """Yields the archives of a virtual host's streams, and those that policies name."""
        for kind, name, stream in self._engine.archived_streams(vhost):
            yield from self.of(vhost, kind, name, stream)

    def of(self, vhost: str, kind: Kind, name: str, stream: Stream) -> Iterator[Archive]:
        """Yields the archives of a stream, and the one that its policy names."""
        found = FoundStream(vhost, name, "exchange" if kind == "x" else "queue", stream)
        archives, state = stream.archives(), stream.state()
        if state is None:
            return  # It is being deleted.
        waited_for = () if archives.waited_for is None else (archives.waited_for,)
        for archive in dict.fromkeys((*archives.reports, *waited_for)):
            is_waited_for = archive == archives.waited_for
            yield Archive(
                found, archive, state, archives.reports.get(archive), is_waited_for,
                archives.exceeded if is_waited_for else None,
            )  # fmt: skip


def _require_kept(is_durable: bool) -> None:
    """Raises `NotStored`."""
    if not is_durable:
        raise NotStored(
            "applied, but not durable because the disk is full: a restart will revert it",
            field="archive",
        )


def _check(name: str, manifest: str, offset: int) -> None:
    """Raises `BadRequest`."""
    for field, text, low, high in (
        ("archive", name, 1, MAX_NAME_BYTES), ("manifest", manifest, 0, MAX_MANIFEST_BYTES),
    ):  # fmt: skip
        size = len(text.encode())
        if not low <= size <= high or not text.isprintable():
            raise BadRequest(
                f"is {size} bytes long, or not printable", field=field, value=text,
                limit=f"{low} to {high} bytes",
            )  # fmt: skip
    if offset < 0:
        raise BadRequest("is negative", field="offset", value=str(offset), limit="0 or more")
