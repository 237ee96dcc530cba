"""What is changed, that it is chosen by seed and text alone, and which tests look at it."""

from __future__ import annotations

from pathlib import Path

import pytest

from .__main__ import AREAS, ROOT, mutants
from .mutations import mutations
from .suites import SUITES, suites
from .traced_lines import TracedLines
from .workshop import Workshop

WANTED = 400


@pytest.mark.parametrize(
    ("source", "changed"),
    [
        ("a < b", ["(a <= b)"]),
        ("a is None", ["(a is not None)"]),
        ("a + b", ["(a - b)"]),
        ("a += b", ["a -= b"]),
        ("a and b", ["(a or b)"]),
        ("not a", ["(a)"]),
        ("a(7)", ["a(8)"]),
        ("a(True)", ["a(False)"]),
        ("def f():\n    return a, b", ["def f():\n    return b, a"]),
        ("def f() -> None:\n    a()\n    b()", ["def f() -> None:\n    a()\n    return"]),
        ("def f() -> None:\n    a()", ["def f() -> None:\n    return"]),
        ("'ä'; a < b", ["'ä'; (a <= b)"]),
        ("LIMIT = 7", []),
        ("'text' + a", []),
        ("f'{a < b}'", []),
        ("a: Literal[1]", []),
        ("assert a < b", []),
        ("if TYPE_CHECKING:\n    a < b", []),
    ],
)
def test_mutations(source: str, changed: list[str]) -> None:
    assert [one.applied(source) for one in mutations(source)] == changed


@pytest.mark.thorough
def test_enough_are_chosen_in_each_area() -> None:
    made = mutants(1, "")
    assert len(made) >= WANTED
    shares = [sum(module.startswith(f"{area}/") for _, module, _ in made) for area in AREAS]
    assert all(share >= WANTED // 8 for share in shares)


def test_the_seed_chooses() -> None:
    made = mutants(1, "core/route")
    assert made == mutants(1, "core/route")
    assert [rank for rank, _, _ in made] != [rank for rank, _, _ in mutants(2, "core/route")]


def test_suites_are_there_and_begin_with_the_modules_own() -> None:
    assert [one for paths in SUITES.values() for one in paths if not (ROOT / one).exists()] == []
    found = suites(ROOT, "core/queue/limit.py")
    assert found[:2] == ["tests/core/queue/test_limit.py", "tests/core/queue"]
    assert found[-1] == SUITES["core/queue"][-1]


@pytest.mark.thorough
def test_every_module_has_tests(tmp_path: Path) -> None:
    paths = (path for area in AREAS for path in (ROOT / area).rglob("*.py"))
    modules = [path.relative_to(ROOT).as_posix() for path in paths]
    assert [module for module in modules if not suites(ROOT, module)] == []
    assert suites(tmp_path, "core/clock.py") == []


@pytest.mark.thorough
def test_a_mutation_is_tried_against_the_tests_that_run_its_line(tmp_path: Path) -> None:
    workshop = Workshop(ROOT, tmp_path)
    module, test = "core/route/consistent_hash.py", "tests/core/route/test_consistent_hash.py"
    lines = (ROOT / module).read_text().splitlines()
    line = max(number for number, text in enumerate(lines, 1) if text.startswith("        return"))
    traced = tmp_path / "traced"
    workshop.trace([test], traced)
    tests = TracedLines(traced).tests(module, line, line, suites(ROOT, module))
    assert tests and all(one.startswith(f"{test}::") for one in tests)
    lines[line - 1] = "        raise RuntimeError"
    workshop.put(module, "\n".join(lines))
    assert workshop.is_failing(tests, 60)
