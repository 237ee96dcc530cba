"""The table of features names tests that exist, and leaves no file of conformance tests out."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
FEATURES = ROOT / "docs" / "features.md"
WITHOUT_TESTS = ("Left out",)
"""Sections whose tables are about something else."""
_NAMED = re.compile(r"`(?:tests/)?([\w/]+\.py)::(\w+)`")


def rows() -> list[str]:
    """The rows of all tables of features, without their heads."""
    sections = re.split(r"^#+ ", FEATURES.read_text(), flags=re.MULTILINE)
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


@pytest.mark.parametrize("document", ["docs/features.md", "docs/differences.md", "README.md"])
def test_named_tests_exist(document: str) -> None:
    missing = [
        f"{path}::{name}"
        for path, name in named((ROOT / document).read_text())
        if not (TESTS / path).is_file() or name not in functions_of(path)
    ]
    assert not missing


def test_each_feature_has_a_test() -> None:
    found = rows()
    assert len(found) > 150
    assert [row for row in found if not named(row)] == []


def test_each_file_of_conformance_tests_is_named() -> None:
    files = {f"conformance/{path.name}" for path in (TESTS / "conformance").glob("test_*.py")}
    assert files - {path for path, _ in named(FEATURES.read_text())} == set()


def test_each_client_is_named() -> None:
    """One row a library; pika has many files."""
    files = {path.name for path in (TESTS / "clients").glob("test_*.py")}
    listed = {path.removeprefix("clients/") for path, _ in named(FEATURES.read_text())}
    several = {name for name in files if name.startswith("test_pika_")} | {"test_transactions.py"}
    assert files - several - listed == set()
