"""Results for people and for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from typing import Any

from .results import Level, Result, Verdict

_SHOWN = {Verdict.PASS: "pass", Verdict.FAIL: "FAIL", Verdict.SKIP: "skip"}
_INDENT = " " * 18


def table(results: Sequence[Result], *, verbose: bool) -> str:
    """A line for each check, its reason below it, and what it all comes to."""
    lines = [line for result in results for line in _lines(result, verbose)]
    return "\n".join([*lines, "", summary(results)])


def summary(results: Sequence[Result]) -> str:
    breaches = sum(result.is_breach for result in results)
    parts = [
        f"{_count(results, Verdict.PASS)} passed",
        f"{_count(results, Verdict.FAIL)} failed",
        f"{_count(results, Verdict.SKIP)} not decided",
    ]
    if breaches:
        verdict = f"This hub breaks {breaches} of the rules that a WebSub hub must keep."
    else:
        verdict = "No rule that a WebSub hub must keep was seen broken."
    return f"{', '.join(parts)}. {verdict}"


def document(hub: str, results: Sequence[Result]) -> str:
    """As JSON; `seen` holds what was sent and what came."""
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
    yield f"{result.number}  {result.level:<6}  {_SHOWN[result.verdict]}  {result.title}"
    if result.reason:
        yield f"{_INDENT} {result.reason}"
    if result.verdict is Verdict.FAIL:
        yield f"{_INDENT} {result.rule}"
    if verbose:
        yield from (f"{_INDENT} {line}" for line in result.seen)


def _counts(results: Sequence[Result]) -> dict[str, Any]:
    return {verdict.value: _count(results, verdict) for verdict in Verdict}


def _count(results: Iterable[Result], verdict: Verdict) -> int:
    return sum(result.verdict is verdict for result in results)


def _entry(result: Result) -> dict[str, Any]:
    return {
        "number": result.number,
        "title": result.title,
        "level": result.level,
        "rule": result.rule,
        "verdict": result.verdict,
        "reason": result.reason,
        "seen": list(result.seen),
    }
