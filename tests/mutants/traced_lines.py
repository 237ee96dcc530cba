"""Which tests run which lines of the product: a plugin of pytest that records it, and its reader.

Only tests that run the product in their own process are recorded (`RECORDED`): a mutation of a line
is tried against those that run it, instead of against all.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from pathlib import Path

import coverage
import pytest

RECORDED = ("tests/core", "tests/hub", "tests/app", "tests/model/test_inside.py")
TESTS_MAX = 300
"""A line that thousands of tests run is noticed by the first hundreds of them, or by none."""
VARIABLE = "WARREN_TRACED_LINES"
"""The environment variable that names the file to record to."""


def is_recorded(path: str) -> bool:
    return any(path == one or path.startswith(f"{one}/") for one in RECORDED)


class TracedLines:
    """What was recorded for a copy of the tree."""

    def __init__(self, file: Path) -> None:
        self._data = coverage.CoverageData(str(file))
        self._data.read()
        self._failed = set(_failed_file(file).read_text().splitlines())

    def tests(self, module: str, first: int, last: int, near: Sequence[str]) -> list[str]:
        """Returns tests that run one of these lines and passed, those of the files `near` first;
        none if the lines run while the module is imported, or are not known to be run by a test."""
        files = (one for one in self._data.measured_files() if one.endswith(f"/{module}"))
        by_line = self._data.contexts_by_lineno(next(files, module))
        found = [name for line in range(first, last + 1) for name in by_line.get(line, ())]
        if "" in found:
            return []
        tests = sorted({*found} - self._failed, key=lambda name: (_rank(name, near), name))
        return tests[:TESTS_MAX]


def _rank(name: str, near: Sequence[str]) -> int:
    """Returns the position of the first path that a test is below."""
    path = name.partition("::")[0]
    places = (at for at, one in enumerate(near) if path == one or path.startswith(f"{one}/"))
    return next(places, len(near))


class _Recorder:
    def __init__(self, file: str) -> None:
        place = Path.cwd().resolve()
        include = [str(place / area / "*") for area in ("app", "core", "hub")]
        self._coverage = coverage.Coverage(file, include=include, config_file=False)
        self._failed = _failed_file(Path(file)).open("w")
        self._coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._coverage.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self._coverage.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            print(report.nodeid, file=self._failed)

    def pytest_unconfigure(self) -> None:
        self._failed.close()
        self._coverage.stop()
        self._coverage.save()


def _failed_file(file: Path) -> Path:
    return file.with_suffix(".failed")


def pytest_configure(config: pytest.Config) -> None:
    if os.environ.get(VARIABLE):
        config.pluginmanager.register(_Recorder(os.environ[VARIABLE]))
