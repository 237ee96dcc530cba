"""The pictures of docs are those of the texts beside them, and can be read by everybody."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from xml.etree import ElementTree

import pytest

from .pictures import FOLDER, draw
from .pictures.picture import KINDS, read
from .pictures.svg import DARK, LIGHT

SOURCES = sorted(FOLDER.glob("*.txt"))
SVG = "{http://www.w3.org/2000/svg}"
LEAST_CONTRAST = 4.5
"""WCAG 2.2, 1.4.3."""


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_drawn_as_the_text_says(source: Path) -> None:
    assert source.with_suffix(".svg").read_text() == draw(source.read_text()), "make pictures"


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_told_to_who_can_not_see_it(source: Path) -> None:
    drawn = ElementTree.fromstring(draw(source.read_text()))
    assert drawn.get("role") == "img"
    told = {
        one.get("id"): one.text
        for one in (drawn.find(SVG + "title"), drawn.find(SVG + "desc"))
        if one is not None
    }
    assert all(told[name] for name in str(drawn.get("aria-labelledby")).split())


@pytest.mark.parametrize(("scheme", "kind"), list(product([LIGHT, DARK], KINDS)))
def test_legible_in_both_schemes(scheme: dict[str, str], kind: str) -> None:
    assert contrast(scheme["text"], scheme[kind]) >= LEAST_CONTRAST
    assert contrast(scheme["label"], scheme["panel"]) >= LEAST_CONTRAST
    assert contrast(scheme["line"], scheme["panel"]) >= 3


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_shown_with_what_it_shows_in_words(source: Path) -> None:
    concepts = (FOLDER.parent / "concepts.md").read_text()
    words = read(source.read_text()).description
    assert f"![{words}](pictures/{source.stem}.svg)" in concepts


def test_no_picture_is_without_its_text() -> None:
    assert {one.stem for one in FOLDER.glob("*.svg")} == {one.stem for one in SOURCES}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("T\nD\n\nqueue a | queue b\n\na -> c", "T: no box is named 'c'"),
        ("T\nD\n\nquue a\n\na -> a", "'quue a' begins with none of client, exchange"),
    ],
)
def test_a_slip_is_named(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read(text)


def contrast(one: str, other: str) -> float:
    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    """Relative luminance, as WCAG defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
