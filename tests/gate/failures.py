"""A pytest plugin that writes down which tests have failed, and how."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

OPTION = "--failures"
PROMISE = "promise"
"""The marker of tests about messages that must not be lost, doubled, changed or overtaken."""


class Failure(msgspec.Struct, frozen=True):
    """A test that has failed, or that pytest could not collect or set up."""

    name: str
    is_promise: bool
    report: str


class FailureLog:
    """Collects the failures of a run, those of its worker processes too, and writes them at its end
    as JSON."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._failures: dict[str, Failure] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report, PROMISE in report.keywords)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        # A file that can't be imported hides what its tests are about.
        self._note(report, True)

    def _note(self, report: pytest.TestReport | pytest.CollectReport, is_promise: bool) -> None:
        if report.failed:
            sections = (f"--- {title}\n{text}" for title, text in report.sections)
            text = "\n".join([report.longreprtext, *sections])
            self._failures.setdefault(report.nodeid, Failure(report.nodeid, is_promise, text))

    def pytest_sessionfinish(self) -> None:
        self._path.write_bytes(msgspec.json.encode(list(self._failures.values())))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(OPTION, type=Path, help="write the failures of this run to a file")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption(OPTION)
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(FailureLog(path))


def read(path: Path) -> list[Failure]:
    """Returns what a run has written; none if it ended before it could."""
    return msgspec.json.decode(path.read_bytes(), type=list[Failure]) if path.exists() else []


def write_reports(failures: Iterable[Failure], folder: Path) -> None:
    """Writes the report of each failure to a file of its own, numbered from 1."""
    for number, failure in enumerate(failures, start=1):
        (folder / f"first-{number}.txt").write_text(f"{failure.name}\n\n{failure.report}\n")
