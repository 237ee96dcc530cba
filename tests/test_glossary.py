"""Words of the old private language don't come back: CONTRIBUTING's glossary has the terms."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.test_architecture import is_there

ROOT = Path(__file__).parents[1]
PRODUCT = ("app", "core", "hub")
DOCUMENTS = ("ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "docs")
ALL = (*PRODUCT, *DOCUMENTS, "tests")
CODE = (*PRODUCT, "ARCHITECTURE.md", "CONTRIBUTING.md")
# A retired word or phrase, the term instead, and where it is gone for good: extend it as more go.
# Words are compared as parts of names too: `span` is in `SpanReader`, `_span` and `first_span`.
RETIRED: dict[str, tuple[str, tuple[str, ...]]] = {
    "agenda": ("schedule", ALL),
    "agreements": ("verified intents", ALL),
    "chill": ("page out", ALL),
    "chilled": ("paged out", ALL),
    "colds": ("paged-out ranges", ALL),
    "dressing": ("header rewriting", CODE),
    "endings": ("expiry", ALL),
    "intake": ("publish scanner", ALL),
    "mover": ("republisher or compactor", ALL),
    "parking": ("retry queues", CODE),
    "pump": ("dispatch", CODE),
    "shelf": ("subscription index", ALL),
    "span": ("message range", CODE),
    "stretch": ("paged-out range", CODE),
    "surplus": ("overload", ALL),
    "surroundings": ("queue context", ALL),
    "thaw": ("page in", ALL),
    "thawed": ("paged in", CODE),
    "traits": ("message attributes", CODE),
    "verdicts": ("outcomes or results", CODE),
    "waiting room": ("login queue", CODE),
}
# Where one of them has its ordinary technical meaning, with the reason.
EXCEPTIONS: dict[tuple[str, str], str] = {}


def files(places: tuple[str, ...]) -> list[str]:
    found = []
    for place in places:
        path = ROOT / place
        found += [path] if path.is_file() else [*path.rglob("*.py"), *path.rglob("*.md")]
    names = (path.relative_to(ROOT).as_posix() for path in found)
    return [name for name in names if name != "tests/test_glossary.py"]


def words(text: str) -> str:
    """The words of prose and names in lower case, with single blanks around each."""
    apart = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", text)
    return f" {' '.join(re.findall(r'[a-z]+', apart.lower()))} "


TEXTS = {name: words(f"{name}\n{(ROOT / name).read_text()}") for name in files(ALL)}


@pytest.mark.parametrize("word", sorted(RETIRED))
def test_a_retired_word_stays_away(word: str) -> None:
    instead, places = RETIRED[word]
    found = [
        name
        for name in files(places)
        if f" {word} " in TEXTS[name] and (word, name) not in EXCEPTIONS
    ]
    assert found == [], f"'{word}' is retired: write {instead}"


def test_exceptions_are_needed() -> None:
    kept = [(word, name) for word, name in EXCEPTIONS if f" {word} " in TEXTS[name]]
    assert kept == list(EXCEPTIONS) and all(word in RETIRED for word, _ in kept)


def test_the_glossary_names_what_is_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text().split("## Glossary")[1].split("## Style")[0]
    assert [name for name in re.findall(r"`([^`\n]+)`", text) if not is_there(name)] == []


def test_the_glossary_is_in_order_and_has_no_term_twice() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text().split("## Glossary")[1].split("## Recipes")[0]
    terms = re.findall(r"^\| ([^|]+) \|", text, re.MULTILINE)[1:]
    assert terms == sorted(set(terms))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("class SpanReader", True),
        ("self._span = 1", True),
        ("FIRST_SPAN", True),
        ("A span of messages.", True),
        ("lifespan", False),
        ("spans", False),
    ],
)
def test_rule_of_words(text: str, found: bool) -> None:
    assert (" span " in words(text)) == found
