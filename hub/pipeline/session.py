"""Makes the Spark session of a job: one for its process, quiet, on the right Java and Python."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .errors import PipelineError
from .java import find_java
from .launchers import worker_python
from .priority import lower_priority

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

CONF: Final = Path(__file__).parent / "conf"
SHUFFLE_PARTITIONS: Final = 4
"""On one machine; Spark's default of 200 is for clusters. A checkpoint keeps what it began with."""
LOCAL: Final = "local[*,4]"
"""All processors of this machine; a task whose process is killed is tried four times, as on a
cluster."""
ARROW: Final = "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false"
"""Options of Java with which it does not check each access to rows that come from a task: a quarter
of its time for them. Spark looks for nulls itself, and the rows are those of its own processes."""
COLLECTOR: Final = "-XX:+UseParallelGC"
"""Collects the rows of a batch with less of the processor than Java's default, for longer pauses,
which no job notices."""
NICENESS: Final = 10
"""Of Spark on this machine, where it takes all processors that it gets: the server may need them,
and gets nine tenths of a processor that both want."""

INSTALL: Final = "run pip install 'warrenmq[spark]'"
NEEDED: Final = ("4.2", "4.3")


class NoSpark(PipelineError):
    """PySpark is not installed, or not the one that is needed."""


def require_spark() -> None:
    """Raises `NoSpark` without PySpark, and for a release that has not what is used of it."""
    try:
        from pyspark import __version__ as version
    except ImportError as error:
        raise NoSpark(f"Spark is not installed ({error}); {INSTALL}") from error
    if ".".join(version.split(".")[:2]) not in NEEDED:
        raise NoSpark(f"PySpark {version} is installed, {' or '.join(NEEDED)} needed; {INSTALL}")


def spark_session(
    name: str,
    *,
    master: str = LOCAL,
    settings: Mapping[str, str] | None = None,
    niceness: int = NICENESS,
) -> SparkSession:
    """Returns the session of this process, made at the first call. Spark on this machine has that
    niceness.

    Raises `NoSpark` if the extra is not installed, `NoJava` if no Java can be used.
    """
    require_spark()
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "warren"
    os.environ["JAVA_HOME"] = str(find_java(os.environ, cache).home)
    # Set before the JVM starts: setLogLevel comes too late for what it prints first.
    os.environ.setdefault("SPARK_CONF_DIR", str(CONF))
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Workers would take python3 of PATH, which need not have pyarrow.
    python = worker_python(cache) if master.startswith("local") else sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = python
    if master.startswith("local"):
        os.environ["PYSPARK_PYTHON"] = python
    else:  # It may be elsewhere there, as in an archive that is unpacked for each task.
        os.environ.setdefault("PYSPARK_PYTHON", python)
    conf = SparkConf().setAppName(name).setMaster(master)
    conf.setAll([*_settings(master).items(), *(settings or {}).items()])
    if master.startswith("local") and SparkContext._active_spark_context is None:
        _start_java(conf, niceness)
    session = SparkSession.builder.config(conf=conf).getOrCreate()
    _register(session)
    return session


def _start_java(conf: SparkConf, niceness: int) -> None:
    """Starts Spark on this machine, in a session of its own: where Linux divides processors among
    sessions, that can have another priority than the program that has started it."""
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    launch: Callable[..., JavaGateway] = launch_gateway
    gateway = launch(conf, {"start_new_session": True})
    SparkContext(conf=conf, gateway=gateway)
    # Java that somebody else has started, such as spark-submit, is no process of this one.
    if gateway.proc is not None:
        lower_priority(gateway.proc.pid, niceness)


def _register(session: SparkSession) -> None:
    """Makes the source known: Spark lists the modules of `sys.path` to find it, and those of an
    editable installation are in no folder there."""
    from .source import WarrenDataSource

    session.dataSource.register(WarrenDataSource)


def _collector() -> str:
    """Returns the option for Java's collector, unless the user may have chosen another one: Java
    does not start with two."""
    given = os.environ.get("JDK_JAVA_OPTIONS", "") + os.environ.get("JAVA_TOOL_OPTIONS", "")
    is_ours = os.environ.get("SPARK_CONF_DIR") == str(CONF)
    return COLLECTOR if is_ours and "GC" not in given else ""


def _settings(master: str) -> dict[str, str]:
    found = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.executor.defaultJavaOptions": ARROW,
    }
    if hasattr(socket, "AF_UNIX"):
        # A seventh less of the processor for each row than over loopback TCP.
        found["spark.python.unix.domain.socket.enabled"] = "true"
    found["spark.driver.defaultJavaOptions"] = f"{ARROW} {_collector()}".strip()
    if master.startswith("local"):
        found["spark.sql.shuffle.partitions"] = str(SHUFFLE_PARTITIONS)
        found["spark.driver.host"] = found["spark.driver.bindAddress"] = "127.0.0.1"
    return found
