"""The list of checks, and the one in the document."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from warrenmq.app.conformance.check_context import CheckContext
from warrenmq.app.conformance.registry import all_checks, check
from warrenmq.app.conformance.results import Level

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
        assert f"::test_rule_{number:02}_" in row


def test_the_numbers_of_websub_rocks() -> None:
    titles = {one.number: one.title for one in all_checks() if one.number <= 106}
    words = {
        100: "Typical",
        101: "secret",
        102: "Additional parameters",
        103: "again",
        104: "Unsubscribing",
        105: "Plain text",
        106: "JSON",
    }
    assert titles.keys() == words.keys()
    assert all(words[number] in title for number, title in titles.items())


def test_a_number_is_given_once() -> None:
    async def play(_: CheckContext) -> None: ...

    with pytest.raises(ValueError, match="two checks with the number 100"):
        check(100, "again", Level.MAY, "none")(play)
