"""What Spark raises becomes one line that a user can do something with."""

from __future__ import annotations

import os
import signal

import pytest
from pyspark.sql import SparkSession

from warrenmq.hub.pipeline.errors import JobError
from warrenmq.hub.pipeline.spark_errors import explain


def end_this_process(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def said(error: Exception) -> str:
    found = explain(error)
    assert isinstance(found, JobError) and "\n" not in str(found)
    return str(found)


def test_a_process_of_a_task_that_is_killed_each_time(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="Python worker") as caught:
        spark.sparkContext.parallelize([1], 1).foreach(end_this_process)
    assert said(caught.value).startswith("a Python process of Spark's tasks, each time")


def test_an_ended_java_is_named() -> None:
    assert said(ConnectionRefusedError(111, "Connection refused")).startswith("Java, in which")


def test_an_error_of_java_is_one_line(spark: SparkSession) -> None:
    """py4j says first which call it was."""
    with pytest.raises(Exception, match="An error occurred while calling") as caught:
        spark.sparkContext._jvm.java.io.FileReader("/gone")  # type: ignore[union-attr]
    assert said(caught.value).startswith("java.io.FileNotFoundException: /gone")
