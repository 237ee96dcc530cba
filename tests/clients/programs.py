"""Clients in other languages: what each needs, how its program is built, how it is run.

Packages come as the lock files say (go.sum, Cargo.lock), through each language's own tool.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
BUILT = HERE.parents[1] / ".cache" / "clients"
BUILD_LIMIT_S = 900
"""With an empty cache, Rust's packages are fetched and compiled."""
JARS = [
    Path("/usr/share/java", f"{name}.jar") for name in ("amqp-client", "slf4j-api", "slf4j-nop")
]


@dataclass(frozen=True)
class Program:
    """`build` gives the command that takes a broker's URL; `packages` are those of Debian and
    Ubuntu that hold what it needs."""

    name: str
    tools: Sequence[str]
    build: Callable[[], list[str]]
    packages: Sequence[str] = ()
    files: Sequence[Path] = ()

    def missing(self) -> str:
        """Names what is not installed, and how it is; empty when nothing is missing."""
        tools = [tool for tool in self.tools if shutil.which(tool) is None]
        absent = tools + [str(file) for file in self.files if not file.exists()]
        if not absent:
            return ""
        return f"not installed: {', '.join(absent)}; apt install {' '.join(self.packages)}"


def _java() -> list[str]:
    return ["java", "-cp", ":".join(map(str, JARS)), str(HERE / "java" / "Scenarios.java")]


def _go() -> list[str]:
    binary = BUILT / "go" / "scenarios"
    _run("go", ["go", "build", "-buildvcs=false", "-mod=readonly", "-o", str(binary), "."])
    return [str(binary)]


def _rust() -> list[str]:
    target = BUILT / "rust"
    _run("rust", ["cargo", "build", "--quiet", "--locked", "--target-dir", str(target)])
    return [str(target / "debug" / "scenarios")]


def _run(folder: str, command: list[str]) -> None:
    done = subprocess.run(
        command, cwd=HERE / folder, capture_output=True, text=True, timeout=BUILD_LIMIT_S
    )
    assert done.returncode == 0, done.stderr


PROGRAMS = (
    Program(
        "java",
        ["javac", "java"],
        _java,
        ["default-jdk-headless", "librabbitmq-client-java", "libslf4j-java"],
        JARS,
    ),
    Program("go", ["go"], _go, ["golang-go"]),
    Program("rust", ["cargo", "rustc", "cc"], _rust, ["cargo", "rustc", "gcc"]),
)
