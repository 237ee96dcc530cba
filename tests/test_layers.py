"""Imports go app -> hub -> core, each room imports only lower ones, and the core opens nothing."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.rooms import ALONE, NAMES, ORDER, RUNS

ROOT = Path(__file__).parents[1]
TOPS = ("app", "core", "hub")
CIRCLE_MAX = 4
FOR_TYPES = "if TYPE_CHECKING:\n"
# What opens files and sockets, or starts tasks, stands at the edges.
EDGES = ("core.server", "core.store")
OPENING = {
    "asyncio", "http", "io", "multiprocessing", "os", "pathlib", "select", "selectors", "shutil",
    "socket", "sqlite3", "ssl", "subprocess", "tempfile", "urllib",
}  # fmt: skip
PACKAGES_OF_CORE = {"argon2", "pamqp", "pcre2", "re2", "uvloop"}


PATHS = [path for folder in TOPS for path in (ROOT / folder).rglob("*.py")]
PACKAGES = {".".join(path.relative_to(ROOT).parent.parts) for path in PATHS}
SOURCES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in PATHS
}
"""Every module, by its name below `warrenmq`."""


class Module:
    """What a module imports, by absolute names with `warrenmq.` taken off: `imports`, of which only
    annotations use those `for_types`."""

    def __init__(self, name: str, source: str) -> None:
        self.name = name
        self.opens_files = re.search(r"(?<![.\w`])(?<!def )open\(", source) is not None
        found: dict[bool, set[str]] = {True: set(), False: set()}
        for statement, is_for_types in statements(ast.parse(source), is_for_types=False):
            found[is_for_types] |= set(imported(name, statement))
        self.imports = found[True] | found[False]
        self.for_types = found[True] - found[False]

    @property
    def own_imports(self) -> set[str]:
        return {one for one in self.imports if is_in(one, TOPS)}


def statements(node: ast.AST, *, is_for_types: bool) -> Iterator[tuple[ast.stmt, bool]]:
    """All of them, at any depth, and whether they stand below `if TYPE_CHECKING`."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(node, field, ()):
            below = isinstance(inner, ast.If) and ast.unparse(inner.test) == "TYPE_CHECKING"
            if isinstance(inner, ast.stmt):
                yield inner, is_for_types
            yield from statements(inner, is_for_types=is_for_types or below)


def imported(name: str, node: ast.stmt) -> Iterator[str]:
    """`from . import topic` names a module, `from .topic import Topic` is within one."""
    if isinstance(node, ast.Import):
        yield from (alias.name.removeprefix("warrenmq.") for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = _base(name, node)
        for alias in node.names:
            inner = f"{base}.{alias.name}".strip(".")
            yield inner if inner in SOURCES or inner in PACKAGES else base


def _base(name: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return (node.module or "").removeprefix("warrenmq").removeprefix(".")
    parts = name.split(".") if name in PACKAGES else name.split(".")[:-1]
    parts = parts[: len(parts) - (node.level - 1)]
    return ".".join([*parts, *([node.module] if node.module else [])])


@cache
def module(name: str) -> Module:
    return Module(name, SOURCES[name].read_text())


def is_in(name: str, rooms: Iterable[str]) -> bool:
    return any(name == room or name.startswith(f"{room}.") for room in rooms)


@cache
def room_of(name: str) -> str:
    """The longest line of the table that fits the module."""
    return max((room for room in ORDER if is_in(name, [room])), key=len)


def permits(permission: str, imported: str) -> bool:
    """Whether a name on the right of a table stands for the module."""
    if permission in TOPS:
        return room_of(imported) == permission
    return is_in(imported, [permission.removesuffix(".*")])


def may_import(name: str, imported: str) -> bool:
    """Whether the module's room allows the import when the program runs."""
    if is_in(imported, ALONE.get(name, "").split()):
        return True
    room, target = room_of(name), room_of(imported)
    permissions = [room, *RUNS[room].split()]
    return ORDER[target] <= ORDER[room] and any(permits(one, imported) for one in permissions)


def may_name(name: str, imported: str) -> bool:
    """Whether annotations of the module may use it."""
    rooms = [room for room in NAMES if is_in(name, [room])]
    return any(permits(one, imported) for room in rooms for one in NAMES[room].split())


def misplaced(module: Module) -> list[str]:
    """What it imports of Warren although its room forbids it."""
    return sorted(
        one
        for one in module.own_imports
        if not may_import(module.name, one)
        and not (one in module.for_types and may_name(module.name, one))
    )


def unused(table: dict[str, str], needed: Callable[[str], set[str]]) -> dict[str, list[str]]:
    """The permissions of a table without which all that its rooms need is permitted."""
    found: dict[str, list[str]] = {}
    for room, line in table.items():
        permitting = [[one for one in line.split() if permits(one, name)] for name in needed(room)]
        found[room] = [one for one in line.split() if [one] not in permitting]
    return {room: names for room, names in found.items() if names}


def needed_at_run_time(room: str) -> set[str]:
    modules = [module(name) for name in SOURCES if room_of(name) == room]
    return set().union(*(one.own_imports - one.for_types for one in modules))


def needed_by_annotations(room: str) -> set[str]:
    names = [name for name in SOURCES if is_in(name, [room])]
    return {
        one
        for name in names
        for one in module(name).own_imports & module(name).for_types
        if not may_import(name, one)
    }


def opened(module: Module) -> list[str]:
    """What a module of the core does that only an edge may do."""
    if is_in(module.name, EDGES):
        return []
    opens = ["open()"] if module.opens_files else []
    return opens + sorted(one for one in module.imports if is_in(one, OPENING))


def foreign(module: Module) -> list[str]:
    """Packages that a module of the core imports and the core does not stand on."""
    tops = {one.split(".")[0] for one in module.imports}
    return sorted(tops - set(sys.stdlib_module_names) - PACKAGES_OF_CORE - set(TOPS))


Rule = Callable[[Module], list[str]]


def offenders(rule: Rule, room: str = "") -> dict[str, list[str]]:
    """What breaks the rule, by the modules of the room, or of all."""
    names = [name for name in SOURCES if not room or is_in(name, [room])]
    found = {name: rule(module(name)) for name in names}
    return {name: wrong for name, wrong in found.items() if wrong}


def test_modules_import_only_what_their_rooms_allow() -> None:
    assert offenders(misplaced) == {}


def test_the_core_opens_no_files_and_needs_few_packages() -> None:
    assert offenders(opened, "core") == {}
    assert offenders(foreign, "core") == {}


@pytest.mark.parametrize(
    ("rule", "name", "source", "found"),
    [
        (misplaced, "core.queue.example", "from ...hub import errors", ["hub.errors"]),
        (misplaced, "core.queue.example", "def f():\n    import warrenmq.app.cli", ["app.cli"]),
        (misplaced, "core.queue.example", f"{FOR_TYPES}    from ..store.port import Store", []),
        (misplaced, "core.queue.example", "from ..store.port import Store", ["core.store.port"]),
        (
            misplaced,
            "core.queue.example",
            f"{FOR_TYPES}    from ..broker import B",
            ["core.broker"],
        ),
        (misplaced, "core.route", "from ..queue import queue", ["core.queue.queue"]),
        (misplaced, "core.route", "from . import topic", []),
        (misplaced, "core.example", "from .errors import WarrenError", ["core.errors"]),
        (misplaced, "hub.engine.embedded", "from ...core.queue.queue import Queue", []),
        (misplaced, "app.context", "from .routes.plain import Mount", ["app.routes.plain"]),
        (misplaced, "app.routes.api.example", "from ....core import VERSION", []),
        (
            misplaced,
            "app.routes.api.example",
            "from ....core.store.durable import DurableStore",
            ["core.store.durable"],
        ),
        (misplaced, "app.lifespan", "from ..core.store.durable import DurableStore", []),
        (opened, "core.example", "import asyncio.events", ["asyncio.events"]),
        (opened, "core.example", "with open('a') as file: pass", ["open()"]),
        (opened, "core.store.segment", "import os\nopen('a')", []),
        (foreign, "core.wire.frames", "from pamqp import base\nimport httpx", ["httpx"]),
    ],
)
def test_rules_find_what_breaks_them(rule: Rule, name: str, source: str, found: list[str]) -> None:
    assert rule(Module(name, source)) == found


def test_every_permission_is_used() -> None:
    assert unused(RUNS, needed_at_run_time) == {}
    assert unused(NAMES, needed_by_annotations) == {}
    assert unused(ALONE, lambda name: module(name).own_imports) == {}


def circles(imports: dict[str, set[str]]) -> list[list[str]]:
    """The groups of modules that import each other, also by way of others."""
    reached = {name: _reached(name, imports) for name in imports}
    groups = {frozenset(one for one in reached[name] if name in reached[one]) for name in imports}
    return sorted((sorted(group) for group in groups if group), key=len)


def _reached(name: str, imports: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [name]
    while waiting:
        more = imports[waiting.pop()] - found
        found |= more
        waiting += more
    return found


def test_few_modules_know_each_other() -> None:
    """Annotations count too: who reads one module of a circle has to read them all."""
    imports = {name: {*module(name).imports} & SOURCES.keys() - {name} for name in SOURCES}
    assert [circle for circle in circles(imports) if len(circle) > CIRCLE_MAX] == []
    run_time = {name: imports[name] - module(name).for_types for name in SOURCES}
    assert circles(run_time) == []


def test_circles_are_found() -> None:
    imports = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set(), "e": {"a"}}
    assert circles(imports) == [["a", "b", "c"]]


def test_no_room_is_named_that_is_not_there() -> None:
    named = {*RUNS, *ALONE, *NAMES}
    for names in (*RUNS.values(), *ALONE.values(), *NAMES.values()):
        named |= {one.removesuffix(".*") for one in names.split()}
    assert sorted(one for one in named if one not in PACKAGES and one not in SOURCES) == []


def test_every_room_has_a_line() -> None:
    rooms = {name.rsplit(".", 1)[0] for name in SOURCES if name.count(".") > 1}
    assert sorted(room for room in rooms if room_of(room) in ("core", "hub", "app")) == []


def test_rooms_name_only_lower_ones() -> None:
    """What a line lists is above it, so the order of the table has no circle."""
    wrong = {
        room: one
        for room, names in RUNS.items()
        for one in names.split()
        if one in ORDER and ORDER[one] > ORDER[room]
    }
    assert wrong == {}


def picture() -> dict[str, int]:
    """The line of each room in the picture of ARCHITECTURE.md, counted from above."""
    text = (ROOT / "ARCHITECTURE.md").read_text().split("```text\n")[1].split("```")[0]
    lines: dict[str, int] = {}
    for number, line in enumerate(text.splitlines()):
        if not line.startswith(" ") and line:
            top = line.split()[0]
        words = re.sub(r"\(.*\)|and the other.*", "", line.removeprefix(top)).split()
        lines |= {f"{top}.{word.replace('/', '.')}": number for word in words}
    return lines


def test_the_picture_is_true() -> None:
    """What a room may import is on no higher line, but for modules with a line of their own."""
    lines = picture()
    pictured = [room for room in RUNS if room in lines]
    wrong = [
        (room, one)
        for room in pictured
        for one in RUNS[room].split()
        if one in lines and lines[one] > 0 and lines[one] < lines[room]
    ]
    assert wrong == []
    rooms = {room for room in RUNS if room.count(".") == 1 and room in PACKAGES}
    assert sorted(rooms - set(lines) - {"app.package"}) == []
