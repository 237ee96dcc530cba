"""The errors of reading a stream, each with its HTTP status."""

from __future__ import annotations

from ..errors import HubError


class StreamMissing(HubError):
    """There is neither a queue nor an exchange of this name."""

    status = 404
    title = "Not found"


class NotAStream(HubError):
    """The queue or exchange of this name keeps no messages that can be read again."""

    status = 409
    title = "Not a stream"


class StreamAgedOut(HubError):
    """The stream has dropped the message at this offset."""

    status = 410
    title = "Offset aged out"


class StreamRecreated(HubError):
    """The stream was deleted, and another one has its name."""

    status = 410
    title = "Stream recreated"


class OffsetAhead(HubError):
    """The offset is behind the end of the stream."""

    status = 416
    title = "Offset not reached"


class RecordsDamaged(HubError):
    """Messages are damaged on disk."""

    status = 500
    title = "Messages damaged"


class ArrowMissing(HubError):
    """The server was installed without Arrow."""

    status = 406
    title = "Not acceptable"


class TooManyReaders(HubError):
    """Other readers take all the memory for answers; the request can be repeated."""

    status = 503
    title = "Too many readers"
    retry_after_s = 1


class ArchiveUnreadable(HubError):
    """Messages are in an archive that can't be read."""

    status = 500
    title = "Archive unreadable"
