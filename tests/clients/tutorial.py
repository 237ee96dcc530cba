"""The tutorial's pages: their programs by language, and how these are compiled, all at once."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import NamedTuple

from .blocks import FILE, SHOWN, run_tool
from .programs import JARS

HERE = Path(__file__).parent
FOLDER = HERE.parents[1] / "docs" / "tutorial"


class Section(NamedTuple):
    """A page's programs in one language, and what they print."""

    programs: list[str]
    shown: str


def sections(page: Path) -> dict[str, Section]:
    """Returns the page's sections; what is printed is said above them all, or in one of them."""
    introduction, *parts = re.split(r"^## ", page.read_text(), flags=re.MULTILINE)
    found = {}
    for part in parts:
        if programs := [program[1] for program in FILE.finditer(part)]:
            (shown,) = SHOWN.findall(part) or SHOWN.findall(introduction)
            found[part.partition("\n")[0]] = Section(programs, shown)
    return found


PAGES = {page.stem: sections(page) for page in sorted(FOLDER.glob("[1-9]*.md"))}


def build_java(folder: Path) -> None:
    sources = [path.name for path in folder.glob("*.java")]
    run_tool(folder, ["javac", "-cp", ":".join(map(str, JARS)), "-d", "classes", *sources])


def build_go(folder: Path) -> None:
    """Each program gets a folder of its own, since each has its `main`."""
    for lock in ("go.mod", "go.sum"):
        shutil.copy(HERE / "go" / lock, folder)
    programs = [path for path in folder.glob("*.go") if path.name != "must.go"]
    for program in programs:
        package = folder / program.stem
        package.mkdir()
        shutil.copy(program, package)
        shutil.copy(folder / "must.go", package)
    (folder / "bin").mkdir()
    flags = ["-buildvcs=false", "-mod=readonly", "-ldflags=-s -w", "-o", "bin/"]
    run_tool(folder, ["go", "build", *flags, *(f"./{program.stem}" for program in programs)])
