"""What ARCHITECTURE.md names in backticks is there: files, rooms, classes, methods, functions."""

from __future__ import annotations

import ast
import builtins
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "ARCHITECTURE.md").read_text()
NAMES = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", TEXT, flags=re.MULTILINE | re.DOTALL))
FILES = {
    path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py") if ".venv" not in path.parts
}
MAP = [
    [cell.strip() for cell in row.strip("|").split("|")]
    for row in TEXT.split("## Where is ...")[1].split("## ")[0].splitlines()
    if row.startswith("| ")
][1:]
BEHAVIOURS = 12
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


FUNCTIONS: set[str] = set()
CLASSES: dict[str, set[str]] = {}
for _file in FILES:
    _functions, _classes = defined((ROOT / _file).read_text())
    FUNCTIONS |= _functions
    for _name, _members in _classes.items():
        CLASSES[_name] = CLASSES.get(_name, set()) | _members


def is_there(name: str) -> bool:
    """True too of what is no name of code, such as a header or an address."""
    if re.fullmatch(r"[\w/*.]+\.py", name):
        return any(f"/{file}".endswith(f"/{name}") for file in FILES)
    if re.fullmatch(r"(app|core|hub|tests|migrations|static)(/\w+)*", name):
        return (ROOT / name).is_dir()
    if match := re.fullmatch(r"([A-Z]\w+)\.(\w+)(\(.*\))?", name):
        return match[2] in CLASSES.get(match[1], ())
    if re.fullmatch(r"[A-Z][a-z]\w+(\(.*\))?", name):
        return name.split("(")[0] in CLASSES or name in OF_OTHERS or hasattr(builtins, name)
    return True


@pytest.mark.parametrize("name", sorted(set(NAMES)))
def test_what_is_named_is_there(name: str) -> None:
    assert is_there(name)


def test_every_behaviour_is_on_the_map() -> None:
    assert len(MAP) == BEHAVIOURS
    assert all(len(row) == 3 for row in MAP)


@pytest.mark.parametrize("row", MAP, ids=lambda row: row[0])
def test_the_map_leads_to_files_and_functions(row: list[str]) -> None:
    files = re.findall(r"`([^`]+)`", row[1])
    assert files and all((ROOT / file).is_file() for file in files)
    here = [defined((ROOT / file).read_text()) for file in files]
    first = re.findall(r"`([^`]+)`", row[2])[0]
    owner, _, member = first.rpartition(".")
    assert any(member in (classes.get(owner, ()) if owner else known) for known, classes in here)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("core/queue/queue.py", True),
        ("queue.py", True),
        ("core/queue/nothing.py", False),
        ("core/store", True),
        ("core/stores", False),
        ("Broker.publish", True),
        ("Broker.publishes", False),
        ("MessageRange", True),
        ("Span", False),
        ("hub.dead", True),
        ("POST /hub", True),
    ],
)
def test_rule_of_names(name: str, found: bool) -> None:
    assert is_there(name) == found
