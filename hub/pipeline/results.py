"""Publishes the summary of a job, once, however often it is published."""

from __future__ import annotations

import json
from typing import Any, Final

from .jobs.job import Task

_TYPE: Final = "application/json"


def publish_summary(
    task: Task[Any], key: str, document: dict[str, Any], series: str, number: int
) -> None:
    """Publishes one object without a job of Spark, unless the task publishes no results. The
    numbers of a series go up, and what is published with the same one is published once."""
    if task.results is None:
        return
    import pyarrow as pa

    from .publishing import TablePublisher

    row = {"routing_key": key, "body": json.dumps(document).encode(), "content_type": _TYPE}
    with TablePublisher(task.server, task.vhost, task.results, series) as publisher:
        publisher.publish(number, pa.Table.from_pylist([row]))
