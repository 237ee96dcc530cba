"""Imports go app -> hub -> core, the core's rooms know their neighbours, and it opens nothing."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
VALUES = {"core.clock", "core.errors", "core.message", "core.slices", "core.timers"}
INNER = {f"core.{path.stem}" for path in (ROOT / "core").iterdir()} - {"core.server"}
# Who may import what of Warren: the longest name that fits a module decides for it.
MAY_IMPORT = {
    "app": {"app", "hub", "core"},
    "hub": {"hub", "core.broker", "core.clock", "core.errors", "core.message.model"},
    "hub.engine": {"hub", "core"},
    "core": INNER,
    "core.auth": {"core.auth", "core.errors", "core.resources.limits", "core.message.model"},
    "core.auth.authorization": {"core.auth", "core.errors", "core.message.model", "core.vhost"},
    "core.clock": set(),
    "core.errors": set(),
    "core.message": {"core.message", "core.errors", "core.wire"},
    "core.message.model": set(),
    "core.proto": INNER,
    # A queue is a destination and knows the exchanges that it is bound to; it routes nothing.
    "core.queue": {"core.queue", "core.store", "core.wire", "core.route.exchange"}
    | {"core.route.route", "core.definitions.facts"}
    | VALUES,
    "core.queue.default_type": {"core.message.model", "core.vhost"},
    "core.route": {"core.route", "core.errors", "core.message.deduplication"}
    | {"core.message.equivalence", "core.message.model", "core.wire.delay"}
    | {"core.wire.properties"},
    "core.server": {"core"},
    "core.store": {"core.store", "core.wire"} | VALUES,
    "core.slices": set(),
    "core.timers": {"core.clock"},
    "core.wire": {"core.wire"} | VALUES,
}
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


def imports(name: str, source: str) -> Iterator[str]:
    """Absolute names of all that is imported anywhere in the module, `warrenmq.` taken off."""
    for node in ast.walk(ast.parse(source)):
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


def misplaced(name: str, source: str) -> list[str]:
    """What the module imports of Warren although its place forbids it."""
    place = max((room for room in MAY_IMPORT if is_in(name, [room])), key=len)
    # The package `core` itself holds nothing but the version.
    own = (one for one in imports(name, source) if is_in(one, ("app", "core", "hub")))
    return sorted(one for one in own if one != "core" and not is_in(one, MAY_IMPORT[place]))


def opened(name: str, source: str) -> list[str]:
    """What a module of the core does that only an edge may do."""
    if is_in(name, EDGES):
        return []
    calls = (node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    opens = [f"{call.id}()" for call in calls if isinstance(call, ast.Name) and call.id == "open"]
    return sorted(opens + [one for one in imports(name, source) if is_in(one, OPENING)])


def foreign(name: str, source: str) -> list[str]:
    """Packages that a module of the core imports and the core does not stand on."""
    tops = {imported.split(".")[0] for imported in imports(name, source)}
    return sorted(tops - set(sys.stdlib_module_names) - PACKAGES_OF_CORE - {"app", "core", "hub"})


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_module_imports_only_what_its_place_allows(name: str) -> None:
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
        ("core.route", "from ..queue import queue", ["core.queue.queue"]),
        ("core.route", "from . import topic", []),
        ("core.example", "from .server.listener import listen", ["core.server.listener"]),
        ("core.example", "from .route.topic import Topic", []),
        ("hub.example", "from ..core.queue.queue import Queue", ["core.queue.queue"]),
        ("hub.example", "from warrenmq.core import broker, vhost", ["core.vhost"]),
        ("hub.engine.embedded", "from ...core.queue.queue import Queue", []),
        ("hub.engine.embedded", "from ...app import cli", ["app.cli"]),
        ("app.main", "from ..core.broker import Broker\nimport asyncio", []),
    ],
)
def test_rule_of_places(name: str, source: str, found: list[str]) -> None:
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
