"""A job: a name, a sentence, typed parameters, and a function that runs it.

A job's module imports neither pyspark nor pyarrow until the job runs: the command line lists jobs
and refuses parameters where neither is installed.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, get_type_hints

from ..chart import Chart
from ..client import Offsets, StreamClient
from ..errors import OptionError
from ..options import ServerLogin

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ..progress import Progress

RESULTS: Final = "hub.pipeline"
CHECKPOINT: Final = "_checkpoint"

P = TypeVar("P")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Task(Generic[P]):
    """The request for one run of a job.

    `out` is the directory that gets what the job makes, with its manifest and its checkpoint; None
    for a job without a table. `results` is the exchange that gets it too, None for no exchange.
    `follow` asks to go on behind the end of the stream, until the run is stopped.
    """

    server: ServerLogin
    vhost: str
    stream: str
    out: Path | None
    parameters: P
    source: str | None = None
    follow: bool = False
    results: str | None = RESULTS

    @property
    def directory(self) -> Path:
        assert self.out is not None, "a job without a table has no directory"
        return self.out

    @property
    def checkpoint(self) -> Path:
        return self.directory / CHECKPOINT

    def offsets(self) -> Offsets:
        """Returns the stream's offsets as they are now."""
        with closing(self.client()) as client:
            return client.offsets()

    def client(self) -> StreamClient:
        """Returns a client of the stream, which the caller closes."""
        return StreamClient(self.server, self.vhost, self.stream, self.source)

    def options(self) -> dict[str, str]:
        """Returns the options of `spark.readStream.format("warren")` and `spark.read`."""
        found = {**self.login(), "stream": self.stream}
        return found | ({} if self.source is None else {"source": self.source})

    def login(self) -> dict[str, str]:
        """Returns the options that say which server and virtual host it is."""
        return {**self.server.options(), "vhost": self.vhost}


def _nothing(task: Task[Any]) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Job(Generic[P]):
    """A job. `parameters` is a frozen dataclass whose fields are made by `parameter`.

    `check` is called before Spark starts, and raises `PipelineError` for what can be seen then.
    `run` returns when the job is done, or was stopped (`Progress.stopped`), and raises otherwise.
    `chart` is the picture of its table, None for a table that has none.
    """

    name: str
    description: str
    parameters: type[P]
    run: Callable[[SparkSession, Task[P], Progress], None]
    check: Callable[[Task[P]], None] = _nothing
    needs_stream: bool = True
    makes_table: bool = True
    chart: Chart | None = None


@dataclass(frozen=True, slots=True)
class JobParameter:
    """A parameter, as the command line shows it."""

    name: str
    kind: type
    default: Any
    description: str
    low: float | None
    high: float | None
    choices: tuple[str, ...]

    @property
    def wanted(self) -> str:
        """The values that it takes, in words."""
        if self.choices:
            return " or ".join(self.choices)
        if self.kind is bool:
            return "true or false"
        if self.kind is str:
            return "a text"
        noun = "a whole number" if self.kind is int else "a number"
        bounds = [f"of {self.low:g} or more"] if self.low is not None else []
        bounds += [f"up to {self.high:g}"] if self.high is not None else []
        return " ".join([noun, *bounds])

    def read(self, text: str) -> Any:
        """Returns the value; raises `OptionError` naming it and what it may be."""
        try:
            return self._checked(_READERS[self.kind](text))
        except ValueError:
            raise OptionError(f"{self.name}='{text}': give {self.wanted}") from None

    def _checked(self, value: Any) -> Any:
        if self.kind is float and not math.isfinite(value):
            raise ValueError
        if self.choices and value not in self.choices:
            raise ValueError
        if self.low is not None and not value >= self.low:
            raise ValueError
        if self.high is not None and not value <= self.high:
            raise ValueError
        return value


_READERS: Final[Mapping[type, Callable[[str], Any]]] = {
    str: str,
    int: int,
    float: float,
    bool: lambda text: bool(("false", "true").index(text.lower())),
}


def parameter(
    default: V,
    description: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
) -> V:
    """Returns a field of a job's parameters: a `str`, `int`, `float` or `bool` with a default, a
    sentence, and what values it takes."""
    metadata = {"description": description, "low": low, "high": high, "choices": choices}
    made: V = field(default=default, metadata=metadata)
    return made


def parameters_of(job: Job[Any]) -> list[JobParameter]:
    kinds = get_type_hints(job.parameters)
    return [
        JobParameter(one.name, kinds[one.name], one.default, **one.metadata)
        for one in fields(job.parameters)
    ]


def read_parameters(job: Job[P], given: Mapping[str, str]) -> P:
    """Returns the parameters, with defaults where none are given.

    Raises `OptionError` naming the parameter, its value and what it may be; for one that is unknown
    the nearest.
    """
    known = {one.name: one for one in parameters_of(job)}
    for name in given:
        if name not in known:
            raise OptionError(_unknown(job.name, name, list(known)))
    return job.parameters(**{name: known[name].read(text) for name, text in given.items()})


def _unknown(job: str, name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, 1, 0.0)
    if not near:
        return f"parameter '{name}' is unknown: {job} has none"
    return f"parameter '{name}' is unknown; did you mean '{near[0]}'? {job} has {', '.join(known)}"
