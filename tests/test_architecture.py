"""What ARCHITECTURE.md names in backticks is there: files, rooms, classes, methods, functions."""

from __future__ import annotations

import ast
import builtins
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "ARCHITECTURE.md").read_text()
NAMES = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", TEXT, flags=re.MULTILINE | re.DOTALL))
FILES = {
    path.relative_to(ROOT).as_posix()
    for folder in ("app", "core", "hub", "migrations", "tests")
    for path in (ROOT / folder).rglob("*.py")
}
MAP = [
    [cell.strip() for cell in row.strip("|").split("|")]
    for row in TEXT.split("## Where is ...")[1].split("## ")[0].splitlines()
    if row.startswith("| ")
][1:]
BEHAVIOURS = 13
LINES_MAX = 350
"""Of a module that gives no reason to be longer."""
OF_OTHERS = {"RabbitMQ", "Warren ..."}
"""Words with a capital that are no class of ours."""


def defined(source: str) -> tuple[set[str], dict[str, set[str]]]:
    """The functions and constants of a module, and the members of its classes."""
    tree = ast.parse(source)
    functions = {
        target.id if isinstance(target, ast.Name) else ""
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    }
    functions |= {
        n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    classes = {n.name: members(n) for n in ast.walk(tree) if isinstance(n, ast.ClassDef)}
    return functions, classes


def members(node: ast.ClassDef) -> set[str]:
    """Methods, fields, and what methods give to `self`."""
    found = {n.name for n in node.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}
    for part in ast.walk(node):
        if isinstance(part, ast.AnnAssign | ast.Assign):
            targets = part.targets if isinstance(part, ast.Assign) else [part.target]
            found |= {one.id for one in targets if isinstance(one, ast.Name)}
            found |= {one.attr for one in targets if isinstance(one, ast.Attribute)}
    return found


@cache
def known_classes() -> dict[str, set[str]]:
    """The classes of the product and of `tests/support`, with their members; of the other tests,
    ARCHITECTURE.md names nothing."""
    classes: dict[str, set[str]] = {}
    for file in FILES:
        if file.startswith("tests/") and not file.startswith("tests/support/"):
            continue
        for name, found in defined((ROOT / file).read_text())[1].items():
            classes[name] = classes.get(name, set()) | found
    return classes


def is_there(name: str) -> bool:
    """True too of what is no name of code, such as a header or an address."""
    if re.fullmatch(r"[\w/*.]+\.py", name):
        return any(f"/{file}".endswith(f"/{name}") for file in FILES)
    if re.fullmatch(r"(app|core|hub|tests|migrations|static)(/\w+)*", name):
        return (ROOT / name).is_dir()
    if match := re.fullmatch(r"([A-Z]\w+)\.(\w+)(\(.*\))?", name):
        return match[2] in known_classes().get(match[1], ())
    if re.fullmatch(r"[A-Z][a-z]\w+(\(.*\))?", name):
        return name.split("(")[0] in known_classes() or name in OF_OTHERS or hasattr(builtins, name)
    return True


def test_what_is_named_exists() -> None:
    assert [name for name in NAMES if not is_there(name)] == []


def test_the_map_leads_to_files_and_functions() -> None:
    assert len(MAP) == BEHAVIOURS
    for _, places, names in MAP:
        files = re.findall(r"`([^`]+)`", places)
        assert files and all((ROOT / file).is_file() for file in files), places
        here = [defined((ROOT / file).read_text()) for file in files]
        first = re.findall(r"`([^`]+)`", names)[0]
        owner, _, member = first.rpartition(".")
        assert any(
            member in (classes.get(owner, ()) if owner else known) for known, classes in here
        ), names


def test_the_map_names_callers_that_call() -> None:
    """A name before a file is in that file; after "called by", it uses the row's first name."""
    for _, _, names in MAP:
        for how, name, file in re.findall(r"(called by )?`([\w.]+)` \(`([\w/]+\.py)`\)", names):
            used = {
                getattr(part, "attr", getattr(part, "id", ""))
                for part in ast.walk(_definition(file, name))
            }
            first = re.findall(r"`([^`]+)`", names)[0].rpartition(".")[2]
            assert not how or first in used, f"{name} of {file} does not call {first}"


def _definition(file: str, name: str) -> ast.AST:
    """The class, method or function of that name."""
    node: ast.AST = ast.parse((ROOT / file).read_text())
    for part in name.split("."):
        inside = ast.iter_child_nodes(node)
        node = next(one for one in inside if getattr(one, "name", "") == part)
    return node


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("queue.py", True),
        ("core/queue/nothing.py", False),
        ("core/store", True),
        ("core/stores", False),
        ("Broker.publish", True),
        ("Broker.publishes", False),
        ("Span", False),
        ("POST /hub", True),
    ],
)
def test_rule_of_names(name: str, found: bool) -> None:
    assert is_there(name) == found


def test_long_modules_say_why() -> None:
    product = [name for name in sorted(FILES) if name.startswith(("app/", "core/", "hub/"))]
    sources = {name: (ROOT / name).read_text() for name in product}
    reason = "The module is long since"
    silent = [
        name
        for name, source in sources.items()
        if source.count("\n") > LINES_MAX
        and reason not in " ".join((ast.get_docstring(ast.parse(source)) or "").split())
    ]
    assert silent == []
