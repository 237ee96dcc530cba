"""The blocks of docs/pipeline.md, pasted line by line in their order, do what it says."""

from __future__ import annotations

import code
import io
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from tests.support.server import WarrenServer
from warrenmq.hub.pipeline.jobs.job import parameters_of
from warrenmq.hub.pipeline.jobs.registry import JOBS

DOCUMENT = (Path(__file__).parents[2] / "docs/pipeline.md").read_text()
TIMEOUT_S = 110.0
PASTED = ("sh", "python")
"""Fences of what is pasted here; `console` is for what needs another machine, or minutes."""


class Block(NamedTuple):
    """What is pasted, into a shell or into Python, and what it prints if the document says so."""

    line: int
    fence: str
    text: str
    shown: str | None


def blocks() -> Iterator[Block]:
    fences = re.compile(r"^```(\w+)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.M | re.S)
    for found in fences.finditer(DOCUMENT):
        if found[1] in PASTED:
            yield Block(DOCUMENT.count("\n", 0, found.start()) + 2, *found.groups())


class Terminal(code.InteractiveConsole):
    """Python as it answers a user who types, but for errors: these are raised."""

    def __init__(self, names: dict[str, Any]) -> None:
        super().__init__(names)

    def runcode(self, code: CodeType) -> None:
        exec(code, self.locals)

    def showsyntaxerror(self, *_: Any, **__: Any) -> None:
        raise

    def paste(self, text: str) -> str:
        with redirect_stdout(io.StringIO()) as printed:
            # A user ends what is indented with an empty line.
            more = [self.push(line) for line in [*text.splitlines(), ""]]
        assert not more[-1], "the block is not complete"
        return printed.getvalue()


class User:
    """Pastes blocks in a directory, with the port of this run's server."""

    def __init__(self, directory: Path, server: WarrenServer) -> None:
        self._directory = directory
        self._port = str(server.http_port)
        self._python = Terminal({})
        scripts = str(Path(sys.executable).parent)
        self._environment = os.environ | {
            "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
            # Of the JVMs that jobs start: compiling thoroughly takes longer than these do.
            "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1",
            # Other tests, which run beside these, need no priority.
            "WARREN_PIPELINE_NICENESS": "0",
        }

    def paste(self, block: Block) -> str:
        text = block.text.replace("15672", self._port)
        if block.fence == "sh":
            printed = self._shell(text)
        else:
            # The session's Java was started in another directory.
            text = re.sub(r'"(archive|totals-checkpoint)"', rf'"{self._directory}/\1"', text)
            printed = self._python.paste(text)
        return printed.replace(self._port, "15672")

    def _shell(self, text: str) -> str:
        done = subprocess.run(
            ["bash", "-euc", text], cwd=self._directory, env=self._environment,
            capture_output=True, text=True, timeout=TIMEOUT_S,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_walk_through(
    spark: SparkSession,
    warren: WarrenServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    push_filters: Callable[[bool], None],
) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    push_filters(False)  # As in the session that users make.
    monkeypatch.chdir(tmp_path)
    user = User(tmp_path, warren)
    for block in blocks():
        try:
            printed = user.paste(block)
        except Exception as error:
            error.add_note(f"in docs/pipeline.md, line {block.line}:\n{block.text}")
            raise
        if block.shown is not None:
            assert printed == block.shown, f"docs/pipeline.md, line {block.line}"


def test_jobs_and_parameters_are_those_that_there_are() -> None:
    for job in JOBS.values():
        assert f"- `{job.name}`: {job.description}\n" in DOCUMENT
    rows = re.findall(r"^\| ([\w-]+) \| `(\w+)` \| `?(.*?)`? \| (.*) \|$", DOCUMENT, re.M)
    assert rows == [
        (job.name, one.name, _shown(one.default), one.description)
        for job in JOBS.values()
        for one in parameters_of(job)
    ]


def _shown(default: object) -> str:
    return str(default).lower() if isinstance(default, bool) else str(default)
