"""How the session of a job is made."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pika
import pytest
from pyspark.sql import SparkSession

from tests.support.server import WarrenServer
from warrenmq.hub.pipeline.options import ServerLogin
from warrenmq.hub.pipeline.shell import run_shell

STREAM = {"x-queue-type": "stream"}
READING = '.read.format("warren").option("no", "1").load()'
OF_A_JOB = f"""
import sys
from warrenmq.hub.pipeline.session import spark_session

session = spark_session("elsewhere", master="local[1]", niceness=0)
stream = session.readStream.format("warren").option("url", sys.argv[1]).option("stream", "short")
writing = stream.load().writeStream.format("noop").option("checkpointLocation", sys.argv[2])
writing.trigger(availableNow=True).start().awaitTermination()
session.range(1_000_000).mapInArrow(lambda batches: batches, "id bigint").take(1)
session{READING}
"""
OF_A_USER = f"""
from pyspark.sql import SparkSession

SparkSession.builder.master("local[1]").getOrCreate(){READING}
"""


WITH_A_KILL = """
import os, signal, sys
from warrenmq.hub.pipeline.session import spark_session

mark = sys.argv[1]

def die_once(number):
    if not os.path.exists(mark):
        open(mark, "x").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return number

print(spark_session("kill", niceness=0).sparkContext.parallelize([3, 4], 1).map(die_once).sum())
"""


def test_a_shell_has_the_session_and_streams(
    spark: SparkSession, warren: WarrenServer, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    with pika.BlockingConnection(pika.URLParameters(warren.amqp_url)) as connection:
        channel = connection.channel()
        channel.queue_declare("typed", durable=True, arguments=STREAM)
        channel.confirm_delivery()
        channel.basic_publish("", "typed", b"hello", pika.BasicProperties(delivery_mode=2))
    typed = 'print(stream("typed", startingOffset=0).collect()[0].body)\n'
    typed += 'stream("typed", follow=True).isStreaming, spark.version\n'
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    run_shell(spark, ServerLogin(warren.http_url, "guest", "guest"), "/")
    shown = capsys.readouterr().out
    assert "b'hello'" in shown and f"(True, '{spark.version}')" in shown


def test_java_has_a_session_of_its_own(spark: SparkSession) -> None:
    """Where Linux divides processors among sessions first, its niceness counts nothing in ours."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None and os.getsid(gateway.proc.pid) != os.getsid(0)


def test_java_does_not_check_rows_that_tasks_send(spark: SparkSession) -> None:
    system = spark.sparkContext._jvm.System  # type: ignore[union-attr]
    assert system.getProperty("arrow.enable_unsafe_memory_access") == "true"


@pytest.mark.thorough
@pytest.mark.parametrize("program", [OF_A_JOB, OF_A_USER], ids=["in a job", "without registration"])
def test_the_source_is_found_from_any_directory(
    spark: SparkSession, warren: WarrenServer, tmp_path: Path, program: str
) -> None:
    assert spark.version  # Java is found, and named in the environment.
    with pika.BlockingConnection(pika.URLParameters(warren.amqp_url)) as connection:
        connection.channel().queue_declare("short", durable=True, arguments=STREAM)
    said = ran(program, tmp_path, warren.http_url, str(tmp_path / "checkpoint")).stderr
    assert "option 'no' is unknown" in said
    # Nor does Spark's Python print that a query has ended, or that a task is needed no longer.
    assert "Broken pipe" not in said


@pytest.mark.thorough
def test_a_task_whose_process_is_killed_is_run_again(tmp_path: Path) -> None:
    mark = tmp_path / "killed"
    done = ran(WITH_A_KILL, tmp_path, str(mark))
    assert (mark.exists(), done.stdout) == (True, "7\n")
    # No page of Java.
    assert "Python worker exited unexpectedly" in done.stderr and "\tat " not in done.stderr


def ran(program: str, directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    java = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=directory, capture_output=True, text=True,
        env=os.environ | java, check=False,
    )  # fmt: skip
