"""Writes families as text: that of Prometheus (0.0.4), or OpenMetrics 1.0.0."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ...core.histogram import Histogram
from .family import Family, Kind, Samples, Source, Value

PROMETHEUS: Final = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_ESCAPES: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_HELP_ESCAPES: Final = str.maketrans({"\\": r"\\", "\n": r"\n"})


class Exposition:
    """One of the two formats, which differ in the names of counters and at the end alone."""

    def __init__(self, *, is_openmetrics: bool = False) -> None:
        self.media_type = OPENMETRICS if is_openmetrics else PROMETHEUS
        self.end = "# EOF\n" if is_openmetrics else ""
        self._is_openmetrics = is_openmetrics

    def family(self, family: Family[Source], samples: Samples) -> str:
        """Returns the lines of a family."""
        lines = "".join(
            line
            for values, value in samples
            for line in _lines(family.name, label_text(family.labels, values), value)
        )
        return self.head(family.name, family.kind, family.help) + lines

    def head(self, name: str, kind: Kind, help: str) -> str:
        """Returns what stands before the samples of a family."""
        if self._is_openmetrics:
            name, help = name.removesuffix("_total"), help.replace('"', r"\"")
        return f"# HELP {name} {help.translate(_HELP_ESCAPES)}\n# TYPE {name} {kind}\n"


def label_text(names: Sequence[str], values: Sequence[str]) -> str:
    """Returns labels without braces: `vhost="/",queue="q"`."""
    return ",".join(
        f'{name}="{value.translate(_ESCAPES)}"' for name, value in zip(names, values, strict=True)
    )


def sample(name: str, labels: str, value: float) -> str:
    """Returns a line; `labels` as of `label_text`."""
    return f"{name}{{{labels}}} {value!r}\n" if labels else f"{name} {value!r}\n"


def _lines(name: str, labels: str, value: Value) -> Iterator[str]:
    if not isinstance(value, Histogram):
        yield sample(name, labels, value)
        return
    counts = value.cumulative()
    before = f"{labels}," if labels else ""
    for bound, count in zip((*value.bounds, None), counts, strict=True):
        limit = "+Inf" if bound is None else repr(float(bound))
        yield sample(f"{name}_bucket", f'{before}le="{limit}"', count)
    yield sample(f"{name}_sum", labels, value.sum)
    yield sample(f"{name}_count", labels, counts[-1])
