"""Words of the old private language don't come back: CONTRIBUTING's glossary has the terms."""

from __future__ import annotations

import re
from functools import cache
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
    "adopt": ("apply", ("core",)),
    "agenda": ("schedule", ALL),
    "agreements": ("verified intents", ALL),
    "bury": ("delete the contents", ALL),
    "chill": ("page out", ALL),
    "chilled": ("paged out", ALL),
    "colds": ("paged-out ranges", ALL),
    "courier": ("dispatcher", ALL),
    "crowded": ("consumers behind", ("core",)),
    "dressing": ("header rewriting", CODE),
    "eldest": ("oldest", ALL),
    "endings": ("expiry", ALL),
    "excuse": ("restart timeouts", CODE),
    "gate": ("rate limiter", CODE),
    "hasten": ("deliver now", ALL),
    "hinder": ("postpone", ALL),
    "hindered": ("postponed", ALL),
    "intake": ("publish scanner", ALL),
    "keeper": ("checkpointer or storage", CODE),
    "ledger": ("pending attempts", CODE),
    "mover": ("republisher or compactor", ALL),
    "obstacle": ("failure or refusal", ALL),
    "obstacles": ("failures or refusals", ALL),
    "outbox": ("republisher", ALL),
    "pace": ("rate limiter", CODE),
    "parked": ("in a retry queue", ALL),
    "parking": ("retry queues", CODE),
    "pressing": ("urgent", CODE),
    "pump": ("dispatch", CODE),
    "reclaim": ("rename reserved names", ALL),
    "relieve": ("page out", CODE),
    "shelf": ("subscription index", ALL),
    # Elsewhere a span is that of a trace.
    "span": ("message range", ("core",)),
    "spans": ("message ranges", ("core",)),
    "stranger": ("anonymous client", CODE),
    "strangers": ("anonymous clients", ALL),
    "stretch": ("paged-out range", CODE),
    "surplus": ("overload", ALL),
    "surroundings": ("queue context", ALL),
    "thaw": ("page in", ALL),
    "thawed": ("paged in", CODE),
    "traits": ("message attributes", CODE),
    "turnstile": ("keyed lock", ALL),
    "verdict": ("outcome or result", CODE),
    "verdicts": ("outcomes or results", CODE),
    "waiting room": ("login queue", CODE),
}
# Where one of them has its ordinary technical meaning, with the reason.
EXCEPTIONS: dict[tuple[str, str], str] = {
    ("stranger", "hub/subscriptions/options.py"): "the name in JSON that is stored",
    ("verdict", "app/conformance/report.py"): "the name in JSON that is printed",
    ("mover", "hub/formats/safe_html.py"): "an element of MathML",
    ("span", "app/routes/publish.py"): "OpenTelemetry's",
    ("span", "app/telemetry.py"): "OpenTelemetry's",
    ("span", "hub/spans.py"): "OpenTelemetry's",
    ("spans", "ARCHITECTURE.md"): "OpenTelemetry's",
    ("spans", "app/assembly.py"): "OpenTelemetry's",
    ("spans", "app/lifespan.py"): "OpenTelemetry's",
    ("spans", "app/routes/publish.py"): "OpenTelemetry's",
    ("spans", "app/telemetry.py"): "OpenTelemetry's",
    ("spans", "hub/delivery/dispatcher.py"): "OpenTelemetry's",
    ("spans", "hub/spans.py"): "OpenTelemetry's",
}


@cache
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


@cache
def texts() -> dict[str, str]:
    return {name: words(f"{name}\n{(ROOT / name).read_text()}") for name in files(ALL)}


def test_retired_words_stay_away() -> None:
    found = [
        f"{name}: '{word}' is retired, write {instead}"
        for word, (instead, places) in RETIRED.items()
        for name in files(places)
        if f" {word} " in texts()[name] and (word, name) not in EXCEPTIONS
    ]
    assert found == []


def test_exceptions_are_needed() -> None:
    kept = [(word, name) for word, name in EXCEPTIONS if f" {word} " in texts()[name]]
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
