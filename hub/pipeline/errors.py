"""The errors of the data source: one line each that says what to do."""

from __future__ import annotations

from ...core.errors import WarrenError


class PipelineError(WarrenError):
    """Base of all errors that the data source raises."""


class OptionError(PipelineError):
    """An option is missing, unknown or has an invalid value."""


class SchemaError(PipelineError):
    """A schema names a column that streams don't have, or gives one another type."""


class RowError(PipelineError):
    """A row has a value that no message can have."""


class UnavailableError(PipelineError):
    """The server can't be reached, or has asked to be asked later for too long."""


class WriteError(PipelineError):
    """The server has refused to publish."""


class TooLargeError(PipelineError):
    """The request was larger than the server takes at once."""


class ReadError(PipelineError):
    """The server has refused a request."""


class EngineElsewhere(ReadError):
    """The server runs on a RabbitMQ, whose management API at `url` has what was asked for."""

    def __init__(self, reason: str, url: str) -> None:
        super().__init__(reason)
        self.url = url


class DataLossError(PipelineError):
    """Messages between two offsets can't be read any more: the stream has dropped them, or it was
    deleted and made again."""


class DamagedChunk(PipelineError):
    """Chunks that the server has sent can't be read."""


class OutputError(PipelineError):
    """A job's directory can't be written, or holds what does not fit the job."""


class JobError(PipelineError):
    """A job has failed."""
