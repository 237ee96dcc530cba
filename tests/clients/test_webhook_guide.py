"""docs/guides/webhooks.md: each receiver prints what is genuine and refuses what is forged."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.ports import accepts, free_port
from tests.support.process import terminate, wait_until
from tests.support.server import WarrenServer

from .blocks import SHOWN, command, run_tool, write_files
from .programs import BUILD_LIMIT_S, BUILT

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "webhooks.md"
LOCKS = Path(__file__).with_name("webhooks")
JARS = BUILT / "webhooks" / "jars"
GENUINE, REFUSED = SHOWN.findall(GUIDE.read_text())
LIMIT_S = 60.0

pytestmark = pytest.mark.timeout(BUILD_LIMIT_S + 4 * LIMIT_S)


def _java(folder: Path) -> list[str]:
    if not list(JARS.glob("*.jar")):
        pom = ["-f", str(LOCKS / "pom.xml"), f"-DoutputDirectory={JARS}"]
        run_tool(folder, ["mvn", "--quiet", "--batch-mode", *pom, "dependency:copy-dependencies"])
    jars = list(JARS.glob("*.jar"))
    paths = ":".join(map(str, jars))
    run_tool(folder, ["javac", "-cp", paths, "-d", "classes", "Receiver.java"])
    return command("Receiver.java", jars)


def _go(folder: Path) -> list[str]:
    _copy(folder, "go.mod", "go.sum")
    # The library asks for a newer Go than Debian 12 has, whose `go` does not mind; others write
    # the version that they want into go.mod.
    flags = ["-buildvcs=false", "-mod=mod", "-ldflags=-s -w", "-o", "bin/receiver"]
    run_tool(folder, ["go", "build", *flags, "receiver.go"])
    return command("receiver.go")


def _rust(folder: Path) -> list[str]:
    _copy(folder, "Cargo.toml", "Cargo.lock")
    target = BUILT / "webhooks" / "rust"
    run_tool(folder, ["cargo", "build", "--quiet", "--locked", "--target-dir", str(target)])
    return [str(target / "debug" / "receiver")]


def _copy(folder: Path, *locks: str) -> None:
    for lock in locks:
        shutil.copy(LOCKS / lock, folder)


class Language(NamedTuple):
    name: str
    tools: Sequence[str]
    build: Callable[[Path], list[str]]


LANGUAGES = (
    Language("Python", [], lambda _: command("receiver.py")),
    Language("JavaScript", ["node", "npm"], lambda _: command("receiver.mjs")),
    Language("Java", ["javac", "java", "mvn"], _java),
    Language("Go", ["go"], _go),
    Language("Rust", ["cargo", "rustc", "cc"], _rust),
)


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def folder(warren: WarrenServer, port: int, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All blocks of the guide, with the ports of this run, and the secret."""
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    folder = tmp_path_factory.mktemp("webhooks")
    write_files([GUIDE], folder, {"15672": str(warren.http_port), "9000": str(port)})
    _run(folder, "secret.sh")
    return folder


@pytest.fixture(
    params=[
        # Its compiler takes longer than all others together.
        pytest.param(one, id=one.name, marks=[pytest.mark.thorough] * (one.name == "Rust"))
        for one in LANGUAGES
    ]
)
def printed(folder: Path, port: int, request: pytest.FixtureRequest) -> Iterator[Path]:
    """The file that a receiver prints to, which listens."""
    language: Language = request.param
    if missing := [tool for tool in language.tools if shutil.which(tool) is None]:
        pytest.skip(f"not installed: {', '.join(missing)}")
    if language.name == "JavaScript":
        packages = request.getfixturevalue("node_folder") / "node_modules"
        (folder / "node_modules").symlink_to(packages)
    receiver = language.build(folder)
    secret = {"WEBHOOK_SECRET": (folder / "secret.txt").read_text()}
    log = folder / f"{language.name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(receiver, cwd=folder, stdout=output, env=os.environ | secret)
    try:
        wait_until(lambda: accepts(port), LIMIT_S, f"{language.name} listens")
        yield log
    finally:
        terminate(process, LIMIT_S)


def _run(folder: Path, program: str) -> str:
    done = subprocess.run(
        command(program), cwd=folder, capture_output=True, text=True, timeout=LIMIT_S
    )
    assert (done.returncode, done.stderr) == (0, ""), program
    return done.stdout


def test_genuine_deliveries_are_accepted_and_forged_ones_refused(
    folder: Path, printed: Path
) -> None:
    _run(folder, "subscribe.sh")
    assert _run(folder, "forge.sh") == REFUSED
    _run(folder, "publish.sh")
    wait_until(lambda: printed.read_text() != "", LIMIT_S, "the receiver prints")
    assert printed.read_text() == GENUINE
