"""Clients of the management API in Go and Java: one program each, which gets the server's URLs over
HTTP and AMQP, makes its own calls, and prints a line for each of its checks."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from .programs import (
    BUILT,
    HERE,
    JARS,
    JAVA_PACKAGES,
    Program,
    go_command,
    java_command,
    run,
)

COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"


def _java() -> list[str]:
    folder = Path("java", "management")
    return java_command(HERE / folder / "Management.java", [*_jars(folder), *JARS])


def _jars(folder: Path) -> list[Path]:
    """What pom.xml asks for; Maven runs when that has changed."""
    wanted, built = HERE / folder / "pom.xml", BUILT / "java"
    stamp = built / ".installed"
    if not stamp.exists() or stamp.stat().st_mtime < wanted.stat().st_mtime:
        copy = [COPY, f"-DoutputDirectory={built}", "-Dmdep.overWriteReleases=true"]
        run(str(folder), ["mvn", "--batch-mode", "--quiet", "--strict-checksums", *copy])
        stamp.touch()
    return sorted(built.glob("*.jar"))


RABBIT_HOLE = (
    "overview and nodes", "virtual hosts", "limits", "users", "permissions", "exchanges", "queues",
    "bindings", "policies", "operator policies", "shovels and upstreams", "global parameters",
    "definitions", "feature flags", "health checks", "messages and figures", "pages", "consumers",
    "connections", "the end of a virtual host",
)  # fmt: skip
HTTP_CLIENT = (
    "overview and nodes", "virtual hosts", "limits", "users", "permissions", "exchanges", "queues",
    "bindings", "policies", "shovels", "upstreams", "definitions", "messages and figures", "pages",
    "consumers and channels", "connections", "the end of a virtual host",
)  # fmt: skip
KEDA = ("a queue", "queues by a pattern", "a queue that is not there")
MANAGEMENT_PROGRAMS = (
    Program(
        "rabbit-hole", ["go"], partial(go_command, "./rabbithole", "rabbithole"), ["golang-go"],
        checks=RABBIT_HOLE,
    ),
    Program("keda", ["go"], partial(go_command, "./keda", "keda"), ["golang-go"], checks=KEDA),
    Program(
        "http-client", ["javac", "java", "mvn"], _java, [*JAVA_PACKAGES, "maven"], JARS,
        checks=HTTP_CLIENT,
    ),
)  # fmt: skip
