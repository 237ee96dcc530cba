"""How Spark's Python processes are started."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from warrenmq.hub.pipeline.launchers import worker_python

SHOWN = "import json, os, sys; print(json.dumps([os.environ['PYTHONPATH'], *sys.argv[1:]]))"


def test_spark_s_zip_files_are_left_out(tmp_path: Path) -> None:
    launcher = worker_python(tmp_path / "a cache")
    kept = [str(tmp_path / name) for name in ("a place", "other.zip", "*")]
    zipped = [f"/spark/python/lib/{name}" for name in ("pyspark.zip", "py4j-0.10.9-src.zip")]
    path = ":".join([zipped[0], *kept, zipped[1]])
    printed = subprocess.run(
        [launcher, "-c", SHOWN, "a b", ""], capture_output=True, text=True, check=True,
        env={"PYTHONPATH": path},
    )  # fmt: skip
    assert json.loads(printed.stdout) == [":".join(kept), "a b", ""]


@pytest.mark.parametrize("reason", ["can't be written", "can't be run"])
def test_spark_s_zip_files_are_used_where_no_program_can_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, reason: str
) -> None:
    cache = tmp_path / "cache"
    if reason == "can't be written":
        cache.touch()
    else:
        monkeypatch.setattr("os.access", lambda path, mode: False)
    assert worker_python(cache) == sys.executable
    assert str(cache) in caplog.text and reason in caplog.text


def test_spark_s_zip_files_are_used_if_the_packages_are_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = ModuleSpec("pyspark", None, origin="/spark/python/lib/pyspark.zip/pyspark/__init__.py")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: inside)
    assert worker_python(tmp_path) == sys.executable
