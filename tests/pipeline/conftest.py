"""One Spark session for all tests here: it takes longer to start than any of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from warrenmq.hub.pipeline.java import NoJava
from warrenmq.hub.pipeline.session import spark_session

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
SETTINGS = {
    # Compiling thoroughly takes longer than the tests do.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.sql.shuffle.partitions": "2",
}


TIMEOUT_S = 300
"""The first test starts the session too, which takes a minute where others load the machine."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.parent == here and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    try:
        # Other tests, which run beside these, need no priority.
        session = spark_session("tests", master="local[2,2]", settings=SETTINGS, niceness=0)
    except NoJava as error:
        pytest.skip(str(error))
    yield session
    session.stop()


@pytest.fixture
def push_filters(spark: SparkSession) -> Iterator[Callable[[bool], None]]:
    """Switches filter pushdown on or off for one test: Spark has it off, sessions of jobs on."""
    before = spark.conf.get(PUSHDOWN)
    assert before is not None
    yield lambda on: spark.conf.set(PUSHDOWN, str(on).lower())
    spark.conf.set(PUSHDOWN, before)
