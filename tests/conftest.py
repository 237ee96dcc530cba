"""Servers that tests share, and the rule that nothing is skipped in continuous integration."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator, Iterator
from functools import cache

import pytest
from httpx._config import DEFAULT_TIMEOUT_CONFIG
from httpx._transports import default as httpx_transports
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from tests.support import hub_on_rabbitmq
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

# A client of httpx without timeouts of its own has five seconds for each step, which a busy machine
# may need. They bound a wait, and are no part of what is tested.
for _step in ("connect", "read", "write", "pool"):
    assert hasattr(DEFAULT_TIMEOUT_CONFIG, _step)
    setattr(DEFAULT_TIMEOUT_CONFIG, _step, 60.0)

# Each client of httpx reads the certificates of all authorities, which takes longer than many tests
# do: here they are read once.
assert hasattr(httpx_transports, "create_ssl_context")
httpx_transports.create_ssl_context = cache(httpx_transports.create_ssl_context)

# A collected test is hundreds of objects that stay, and there are 12,000 in each process.
gc.disable()


def pytest_collection_finish() -> None:
    """Objects that are there now are not looked at for garbage again."""
    gc.freeze()
    gc.enable()


TOGETHER = {
    "tests/browser": "Chromium",
    "tests/pipeline": "Java",
    "tests/app/commands/test_bench.py": "RabbitMQ",
    "tests/app/definitions/test_rabbitmq.py": "RabbitMQ",
    "tests/app/test_metrics_of_rabbitmq.py": "RabbitMQ",
    "tests/clients/test_management_shapes.py": "RabbitMQ",
    "tests/conformance/test_management_objects.py": "RabbitMQ",
    "tests/conformance/test_promises_on_rabbitmq.py": "RabbitMQ",
    "tests/conformance/test_streams_on_rabbitmq.py": "RabbitMQ",
    "tests/crash/test_two_hubs.py": "RabbitMQ",
    "tests/hub/engine/test_probing.py": "RabbitMQ",
    "tests/test_guides.py": "RabbitMQ",
}
"""Files and folders that run in one process for each program that their tests share, which takes
longer to start than most tests to run."""


class Scheduling(LoadFileScheduling):  # type: ignore[misc]
    """Each process runs whole files, or all files in `TOGETHER` that share a program."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return next((TOGETHER[path] for path in TOGETHER if file.startswith(path)), file)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest in one process begins first."""
    together = tuple(TOGETHER)
    items.sort(key=lambda item: not item.nodeid.startswith(together))


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
    """One RabbitMQ for the whole run; it measures itself each second. Files that use it are in
    `TOGETHER`, and leave no users and virtual hosts behind."""
    if reason := rabbitmq_support.missing():
        pytest.skip(reason)
    with RabbitMQServer("rabbitmq_management", "rabbitmq_prometheus") as server:
        yield server


@pytest.fixture(scope="module")
def node(rabbitmq: RabbitMQServer) -> Iterator[RabbitMQServer]:
    """The same one with the user of a hub; all that tests make there goes when their module ends.
    It is not killed, stopped or set up otherwise."""
    with hub_on_rabbitmq.prepared(rabbitmq) as node:
        yield node


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
