"""The tables of features name tests that exist, and leave no file of conformance tests out."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
FEATURES = ROOT / "docs" / "features.md"
TABLES = {"docs/features.md": 150, "docs/rabbithub.md": 80, "docs/websub.md": 30}
"""Documents whose rows each name a test, and how many rows there are at least."""
WITHOUT_TESTS = ("Left out", "The checks")
"""Sections whose tables are about something else."""
_NAMED = re.compile(r"`(?:tests/)?([\w/]+\.py)::(\w+)`")


def rows(document: str) -> list[str]:
    """The rows of all tables of features, without their heads."""
    sections = re.split(r"^#+ ", (ROOT / document).read_text(), flags=re.MULTILINE)
    kept = [section for section in sections if not section.startswith(WITHOUT_TESTS)]
    tables = [re.findall(r"^\|.*\|$", section, re.MULTILINE) for section in kept]
    return [row for table in tables for row in table[2:]]


def named(text: str) -> list[tuple[str, str]]:
    return _NAMED.findall(text)


@cache
def functions_of(path: str) -> frozenset[str]:
    """Names of the test functions of a file below `tests`, those in classes too."""
    tree = ast.parse((TESTS / path).read_text())
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, functions))


@pytest.mark.parametrize("document", [*TABLES, "docs/differences.md"])
def test_named_tests_exist(document: str) -> None:
    missing = [
        f"{path}::{name}"
        for path, name in named((ROOT / document).read_text())
        if not (TESTS / path).is_file() or name not in functions_of(path)
    ]
    assert not missing


@pytest.mark.parametrize("document", TABLES)
def test_each_feature_has_a_test(document: str) -> None:
    found = rows(document)
    assert len(found) > TABLES[document]
    assert [row for row in found if not named(row)] == []


def test_each_file_of_conformance_tests_is_named() -> None:
    files = {f"conformance/{path.name}" for path in (TESTS / "conformance").glob("test_*.py")}
    listed = {path for table in TABLES for path, _ in named((ROOT / table).read_text())}
    assert files - listed == set()


def test_each_client_is_named() -> None:
    files = {path.name for path in (TESTS / "clients").glob("test_*.py")}
    listed = {path.removeprefix("clients/") for path, _ in named(FEATURES.read_text())}
    assert files - listed == set()
