"""Servers that tests share, and the rule that nothing is skipped in continuous integration."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from tests.support import postgresql as postgresql_support
from tests.support import rabbitmq as rabbitmq_support
from tests.support.http import Callback
from tests.support.postgresql import PostgreSQLServer
from tests.support.rabbitmq import RabbitMQServer
from tests.support.server import WarrenServer

# Hypothesis also tries what is written in the modules that happen to be loaded: a seed would give
# other cases when a test is run alone, or when something far from it has changed.
assert hasattr(providers, "_get_local_constants")
providers._get_local_constants = Constants

# The same cases for everybody, every time; `make explore` tries others. No test looks at how long
# something took, whichever tests run beside it.
settings.register_profile(
    "warren",
    max_examples=50,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("explore", settings.get_profile("warren"), derandomize=False)
settings.load_profile("warren")


TOGETHER = ("tests/browser", "tests/pipeline")
"""Folders whose files run in one process each, since their tests share a browser or a Java."""


class Scheduling(LoadFileScheduling):  # type: ignore[misc]
    """Each process runs whole files, or all files of a folder in `TOGETHER`."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return next((folder for folder in TOGETHER if file.startswith(folder)), file)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest in one process begins first."""
    items.sort(key=lambda item: not item.nodeid.startswith(TOGETHER))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    return Scheduling(config, log)


@pytest.fixture(scope="module")
def warren() -> Iterator[WarrenServer]:
    """One Warren for the tests of a module, in development mode."""
    # Topics of others are fetched as soon as they are pinged: tests ping often.
    with WarrenServer(dev=True, env={"WARREN_FETCH_GAP_S": "0.1"}) as server:
        yield server


@pytest.fixture(scope="session")
def rabbitmq() -> Iterator[RabbitMQServer]:
    """One RabbitMQ for the whole run."""
    if reason := rabbitmq_support.missing():
        pytest.skip(reason)
    with RabbitMQServer() as server:
        yield server


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgreSQLServer]:
    """One PostgreSQL for the whole run; a test that kills it starts it again."""
    if reason := postgresql_support.missing():
        pytest.skip(reason)
    with PostgreSQLServer() as server:
        yield server


@pytest.fixture
def postgresql_url(postgresql: PostgreSQLServer) -> Iterator[str]:
    """An empty database of the test's own."""
    url = postgresql.create()
    yield url
    postgresql.drop(url)


@pytest.fixture
def callback() -> Iterator[Callback]:
    """A webhook target of the test's own."""
    with Callback() as server:
        yield server


def _forbid_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if os.environ.get("CI") and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"skipped, which counts as a failure when CI is set: {report.longrepr}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _forbid_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _forbid_skip(report)
    return report
