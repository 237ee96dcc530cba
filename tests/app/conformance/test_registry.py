"""The list of checks, and the one in the document."""

from __future__ import annotations

import re
from pathlib import Path

from warrenmq.app.conformance.checks import all_checks

DOCUMENT = Path(__file__).parents[3] / "docs" / "websub.md"


def test_the_document_lists_every_check() -> None:
    listed = DOCUMENT.read_text().partition("\n## The checks\n")[2]
    rows = [
        f"| {one.number} | {one.level} | {one.title}{' (`--slow`)' if one.is_slow else ''} "
        f"| {one.rule} |"
        for one in all_checks()
    ]
    assert re.findall(r"^\| \d.*\|$", listed, re.MULTILINE) == rows


def test_the_document_lists_every_rule() -> None:
    rules = DOCUMENT.read_text().partition("\n## The rules\n")[2].partition("\n## ")[0]
    numbers = [int(number) for number in re.findall(r"^\| (\d+) \|", rules, re.MULTILINE)]
    assert numbers == list(range(1, 24))
    for number, row in zip(numbers, re.findall(r"^\| \d+ \|.*$", rules, re.MULTILINE), strict=True):
        assert re.search(rf"::test_rules?_(\d\d_and_)*{number:02}_", row), row
