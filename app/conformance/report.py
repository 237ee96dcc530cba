"""Formats results as a table and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from typing import Any

from .results import Level, Outcome, Result

_SHOWN = {Outcome.PASS: "pass", Outcome.FAIL: "FAIL", Outcome.SKIP: "skip"}
_INDENT = " " * 18


def table(results: Sequence[Result], *, verbose: bool) -> str:
    """Returns a line for each check, its reason below it, and a summary."""
    lines = [line for result in results for line in _lines(result, verbose)]
    return "\n".join([*lines, "", summary(results)])


def summary(results: Sequence[Result]) -> str:
    breaches = sum(result.is_breach for result in results)
    parts = [
        f"{_count(results, Outcome.PASS)} passed",
        f"{_count(results, Outcome.FAIL)} failed",
        f"{_count(results, Outcome.SKIP)} skipped",
    ]
    if breaches:
        conclusion = f"Violated rules that are a MUST of WebSub: {breaches}."
    else:
        conclusion = "No violation of a MUST of WebSub was found."
    return f"{', '.join(parts)}. {conclusion}"


def document(hub: str, results: Sequence[Result]) -> str:
    """Returns the results as JSON; `seen` contains the requests and responses."""
    levels = {level: _counts([one for one in results if one.level is level]) for level in Level}
    whole: dict[str, Any] = {
        "hub": hub,
        "tool": f"warren {version('warrenmq')}",
        "conforms": not any(result.is_breach for result in results),
        "summary": _counts(results) | {"by_level": levels},
        "checks": [_entry(result) for result in results],
    }
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _lines(result: Result, verbose: bool) -> Iterable[str]:
    yield f"{result.number}  {result.level:<6}  {_SHOWN[result.outcome]}  {result.title}"
    if result.reason:
        yield f"{_INDENT} {result.reason}"
    if result.outcome is Outcome.FAIL:
        yield f"{_INDENT} {result.rule}"
    if verbose:
        yield from (f"{_INDENT} {line}" for line in result.seen)


def _counts(results: Sequence[Result]) -> dict[str, Any]:
    return {outcome.value: _count(results, outcome) for outcome in Outcome}


def _count(results: Iterable[Result], outcome: Outcome) -> int:
    return sum(result.outcome is outcome for result in results)


def _entry(result: Result) -> dict[str, Any]:
    return {
        "number": result.number,
        "title": result.title,
        "level": result.level,
        "rule": result.rule,
        "verdict": result.outcome,
        "reason": result.reason,
        "seen": list(result.seen),
    }
