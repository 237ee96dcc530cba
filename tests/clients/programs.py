"""Clients in other languages: what each needs, how its program is built, how it is run.

Packages come as the lock files say (go.sum, Cargo.lock), through each language's own tool.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .scenarios import SCENARIOS

HERE = Path(__file__).parent
BUILT = HERE.parents[1] / ".cache" / "clients"
BUILD_LIMIT_S = 900
"""With an empty cache, Rust's packages are fetched and compiled."""
JARS = [
    Path("/usr/share/java", f"{name}.jar") for name in ("amqp-client", "slf4j-api", "slf4j-nop")
]
JAVA_PACKAGES = ["default-jdk-headless", "librabbitmq-client-java", "libslf4j-java"]


@dataclass(frozen=True)
class Program:
    """`build` gives the command that takes a broker's URL; `packages` are those of Debian and
    Ubuntu that hold what it needs, `checks` what it prints lines about."""

    name: str
    tools: Sequence[str]
    build: Callable[[], list[str]]
    packages: Sequence[str] = ()
    files: Sequence[Path] = ()
    checks: Sequence[str] = SCENARIOS

    def missing(self) -> str:
        """Names what is not installed, and how it is; empty when nothing is missing."""
        tools = [tool for tool in self.tools if shutil.which(tool) is None]
        absent = tools + [str(file) for file in self.files if not file.exists()]
        if not absent:
            return ""
        return f"not installed: {', '.join(absent)}; apt install {' '.join(self.packages)}"


def _java() -> list[str]:
    return java_command(HERE / "java" / "Scenarios.java", JARS)


def java_command(source: Path, jars: Sequence[Path]) -> list[str]:
    """Gives the command that compiles one file and runs it."""
    # A short run takes half the processor time with these.
    quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    return ["java", *quick, "-cp", ":".join(map(str, jars)), str(source)]


def go_command(package: str, name: str) -> list[str]:
    """Builds a package of the folder `go`."""
    binary = BUILT / "go" / name
    run("go", ["go", "build", "-buildvcs=false", "-mod=readonly", "-o", str(binary), package])
    return [str(binary)]


def _rust() -> list[str]:
    target = BUILT / "rust"
    run("rust", ["cargo", "build", "--quiet", "--locked", "--target-dir", str(target)])
    return [str(target / "debug" / "scenarios")]


def run(folder: str, command: list[str]) -> None:
    """Runs a build; fails with what it complains about."""
    done = subprocess.run(
        command, cwd=HERE / folder, capture_output=True, text=True, timeout=BUILD_LIMIT_S
    )
    assert done.returncode == 0, done.stdout + done.stderr


PROGRAMS = (
    Program("java", ["javac", "java"], _java, JAVA_PACKAGES, JARS),
    Program("go", ["go"], partial(go_command, ".", "scenarios"), ["golang-go"]),
    Program("rust", ["cargo", "rustc", "cc"], _rust, ["cargo", "rustc", "gcc"]),
)
