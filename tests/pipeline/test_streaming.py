"""Queries of jobs say what they leave out."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql.functions import window

from warrenmq.hub.pipeline.jobs.job import Task
from warrenmq.hub.pipeline.jobs.streaming import run_query
from warrenmq.hub.pipeline.options import ServerLogin
from warrenmq.hub.pipeline.progress import Progress, Report

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.thorough
def test_rows_later_than_the_watermark_are_counted_as_dropped(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = tmp_path / "rows"
    rows.mkdir()
    # A watermark is in force from the batch behind the one that has moved it.
    for number, minutes in enumerate((0, 60, 61, 2)):
        row = {"at": (NOON + timedelta(minutes=minutes)).isoformat()}
        path = rows / f"{number}.json"
        path.write_text(json.dumps(row))
        os.utime(path, (number, number))  # Files are read in the order of their times.
    reading = spark.readStream.schema("at timestamp").option("maxFilesPerTrigger", 1)
    counts = reading.json(str(rows)).withWatermark("at", "10 minutes")
    writing = counts.groupBy(window("at", "1 minute")).count().writeStream.outputMode("update")
    reports: list[Report] = []
    progress = Progress(reports.append)
    task = Task(ServerLogin("http://localhost", "guest", "guest"), "/", "", tmp_path / "out", None)
    found: list[Row] = []
    run_query(writing, task, progress, lambda batch, _: found.extend(batch.collect()))
    assert len(found) == 3
    progress.end()
    assert reports[-1].dropped == 1
    assert reports[-1].line().endswith(", 1 too late and dropped")
