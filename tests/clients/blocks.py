"""Blocks of documents that are files, named in their first lines: written, and run."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from .programs import BUILD_LIMIT_S, JARS

FILE = re.compile(r"^```\w+\n(?:#|//) (\S+)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"^```text\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
JAVA = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp"]
"""It starts with half of the CPU: these programs are too short to be optimised."""


def write_files(pages: Iterable[Path], folder: Path, replaced: Mapping[str, str]) -> None:
    """Writes every program of the pages, with other addresses.

    All are replaced in one pass: port 29000 of a server has the documented 9000 in it."""
    old = re.compile("|".join(map(re.escape, replaced)))
    for page in pages:
        for name, text in FILE.findall(page.read_text()):
            assert not (folder / name).exists(), f"{page.name} has a second {name}"
            (folder / name).write_text(old.sub(lambda found: replaced[found[0]], text))


def run_tool(folder: Path, command: Sequence[str]) -> None:
    """Runs a compiler or a package manager."""
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=BUILD_LIMIT_S
    )
    assert done.returncode == 0, done.stdout + done.stderr


def command(program: str, jars: Sequence[Path] = JARS) -> list[str]:
    """Returns how a program is run in its folder; `classes` and `bin` have what was compiled."""
    stem, _, kind = program.rpartition(".")
    return {
        "py": [sys.executable, program],
        "mjs": ["node", program],
        "java": [*JAVA, ":".join(["classes", *map(str, jars)]), stem],
        "go": [f"bin/{stem}"],
        "sh": ["bash", "-eu", program],
    }[kind]
