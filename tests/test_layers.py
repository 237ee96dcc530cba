"""Imports go app -> hub -> core, each room imports only lower ones, and the core opens nothing."""

from __future__ import annotations

import ast
import copy
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.rooms import ALONE, NAMES, ORDER, RUNS

ROOT = Path(__file__).parents[1]
FOR_TYPES = "if TYPE_CHECKING:\n"
# What opens files and sockets, or starts tasks, stands at the edges.
EDGES = ("core.server", "core.store")
OPENING = {
    "asyncio", "http", "io", "multiprocessing", "os", "pathlib", "select", "selectors", "shutil",
    "socket", "sqlite3", "ssl", "subprocess", "tempfile", "urllib",
}  # fmt: skip
PACKAGES_OF_CORE = {"argon2", "pamqp", "re2", "uvloop"}


def modules() -> dict[str, str]:
    """The source of every module, by its name below `warrenmq`."""
    paths = (path for folder in ("app", "core", "hub") for path in (ROOT / folder).rglob("*.py"))
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): (
            path.read_text()
        )
        for path in paths
    }


SOURCES = modules()


def is_in(name: str, rooms: Iterable[str]) -> bool:
    return any(name == room or name.startswith(f"{room}.") for room in rooms)


def is_package(name: str) -> bool:
    return (ROOT / name.replace(".", "/")).is_dir()


def imports(name: str, tree: ast.Module) -> Iterator[str]:
    """Absolute names of all that is imported anywhere in the module, `warrenmq.` taken off."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.removeprefix("warrenmq.") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _base(name, node)
            yield from {_imported(base, alias.name) for alias in node.names}


def _imported(base: str, name: str) -> str:
    """`from . import topic` names a module, `from .topic import Topic` is within one."""
    inner = f"{base}.{name}".strip(".")
    place = ROOT / inner.replace(".", "/")
    return inner if place.is_dir() or place.with_suffix(".py").exists() else base


def _base(name: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return (node.module or "").removeprefix("warrenmq").removeprefix(".")
    parts = name.split(".") if is_package(name) else name.split(".")[:-1]
    parts = parts[: len(parts) - (node.level - 1)]
    return ".".join([*parts, *([node.module] if node.module else [])])


def room_of(name: str) -> str:
    """The longest line of the table that fits the module."""
    return max((room for room in ORDER if is_in(name, [room])), key=len)


def may_import(name: str, imported: str) -> bool:
    """Whether the module's room allows the import when the program runs."""
    if is_in(imported, ALONE.get(name, "").split()):
        return True
    room, target = room_of(name), room_of(imported)
    is_allowed = room == target or is_in(imported, [room, *RUNS[room].split()])
    return is_allowed and ORDER[target] <= ORDER[room]


def may_name(name: str, imported: str) -> bool:
    """Whether annotations of the module may use it."""
    rooms = [room for room in NAMES if is_in(name, [room])]
    return is_in(imported, (one for room in rooms for one in NAMES[room].split()))


def misplaced(name: str, source: str) -> list[str]:
    """What the module imports of Warren although its room forbids it."""
    tree = ast.parse(source)
    runs = {one for one in imports(name, without_types(tree)) if is_own(one)}
    types = {one for one in imports(name, tree) if is_own(one)} - runs
    wrong = {one for one in runs if not may_import(name, one)}
    wrong |= {one for one in types if not may_import(name, one) and not may_name(name, one)}
    return sorted(wrong)


def is_own(name: str) -> bool:
    # The package `core` itself holds nothing but the version.
    return name != "core" and is_in(name, ("app", "core", "hub"))


class _WithoutTypes(ast.NodeTransformer):
    def visit_If(self, node: ast.If) -> ast.AST | None:
        is_for_types = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        return None if is_for_types else self.generic_visit(node)


def without_types(tree: ast.Module) -> ast.Module:
    """The module as it runs: without what stands below `if TYPE_CHECKING`."""
    bare = copy.deepcopy(tree)
    _WithoutTypes().visit(bare)
    return bare


def opened(name: str, source: str) -> list[str]:
    """What a module of the core does that only an edge may do."""
    if is_in(name, EDGES):
        return []
    tree = ast.parse(source)
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    opens = [f"{call.id}()" for call in calls if isinstance(call, ast.Name) and call.id == "open"]
    return sorted(opens + [one for one in imports(name, tree) if is_in(one, OPENING)])


def foreign(name: str, source: str) -> list[str]:
    """Packages that a module of the core imports and the core does not stand on."""
    tops = {imported.split(".")[0] for imported in imports(name, ast.parse(source))}
    return sorted(tops - set(sys.stdlib_module_names) - PACKAGES_OF_CORE - {"app", "core", "hub"})


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_module_imports_only_what_its_room_allows(name: str) -> None:
    assert misplaced(name, SOURCES[name]) == []


@pytest.mark.parametrize("name", sorted(name for name in SOURCES if is_in(name, ["core"])))
def test_core_opens_nothing_and_stands_on_few_packages(name: str) -> None:
    assert opened(name, SOURCES[name]) == []
    assert foreign(name, SOURCES[name]) == []


@pytest.mark.parametrize(
    ("name", "source", "found"),
    [
        ("core.queue.example", "from ...hub import errors", ["hub.errors"]),
        ("core.queue.example", "from ..route.topic import Topic", ["core.route.topic"]),
        ("core.queue.example", "def f():\n    import warrenmq.app.cli", ["app.cli"]),
        ("core.queue.example", f"{FOR_TYPES}    from ..store.port import Store", []),
        ("core.queue.example", "from ..store.port import Store", ["core.store.port"]),
        ("core.queue.example", f"{FOR_TYPES}    from ..broker import Broker", ["core.broker"]),
        ("core.route", "from ..queue import queue", ["core.queue.queue"]),
        ("core.route", "from . import topic", []),
        ("core.example", "from .errors import WarrenError", ["core.errors"]),
        ("core.proto.example", "from ..route.registry import make", []),
        ("core.publish.example", "from ..proto.channel import Channel", ["core.proto.channel"]),
        (
            "hub.delivery.example",
            "from ..subscriptions.store import S",
            ["hub.subscriptions.store"],
        ),
        ("hub.delivery.example", "from ..engine.port import Engine", []),
        ("hub.subscriptions.example", "from ...core.queue.queue import Q", ["core.queue.queue"]),
        ("hub.engine.embedded", "from ...core.queue.queue import Queue", []),
        ("hub.engine.embedded", "from ...app import cli", ["app.cli"]),
        ("app.lifespan", "from ..core.broker import Broker\nimport asyncio", []),
        ("app.paths", "from .routes.plain import Mount", ["app.routes.plain"]),
        ("app.conformance.example", "from ...hub.errors import HubError", ["hub.errors"]),
        ("app.conformance.example", "from ..config import Config", ["app.config"]),
    ],
)
def test_rule_of_rooms(name: str, source: str, found: list[str]) -> None:
    assert misplaced(name, source) == found


@pytest.mark.parametrize(
    ("name", "source", "found"),
    [
        ("core.example", "import asyncio.events", ["asyncio.events"]),
        ("core.example", "from socket import socket", ["socket"]),
        ("core.example", "with open('a') as file: pass", ["open()"]),
        ("core.store.segment", "import os\nopen('a')", []),
        ("core.server.listener", "import asyncio", []),
    ],
)
def test_rule_of_opening(name: str, source: str, found: list[str]) -> None:
    assert opened(name, source) == found


def test_rule_of_packages() -> None:
    assert foreign("core.wire.frames", "import os\nfrom pamqp import base\nimport httpx") == [
        "httpx"
    ]


def test_no_room_is_named_that_is_not_there() -> None:
    named = {*RUNS, *ALONE, *NAMES}
    for names in (*RUNS.values(), *ALONE.values(), *NAMES.values()):
        named |= set(names.split())
    assert sorted(one for one in named if not is_package(one) and one not in SOURCES) == []


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
    rooms = {room for room in RUNS if room.count(".") == 1 and is_package(room)}
    assert sorted(rooms - set(lines) - {"app.package"}) == []
