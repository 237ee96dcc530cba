"""docs/reference is what `make reference` writes, and leaves nothing out."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from tests.reference.headers import undescribed
from tests.reference.pages import FOLDER, PAGES
from warrenmq.app.cli import warren
from warrenmq.app.configuration.loading import NAMES
from warrenmq.app.openapi import document


def text(name: str) -> str:
    return (FOLDER / name).read_text()


@pytest.mark.parametrize("name", PAGES)
def test_pages_are_up_to_date(name: str) -> None:
    assert text(name) == PAGES[name](), "make reference writes them anew"


def test_there_is_no_other_page() -> None:
    assert {path.name for path in FOLDER.iterdir()} == PAGES.keys()


def test_every_setting_has_a_row() -> None:
    rows = re.findall(r"^\| `WARREN_(\w+)` \| .* \| .+ \|$", text("settings.md"), re.MULTILINE)
    assert [name.lower() for name in rows] == list(NAMES)


def test_every_operation_has_a_row() -> None:
    paths = document("")["paths"]
    expected = {
        f"{method.upper()} {path}"
        for path in paths
        for method in paths[path].keys() - {"parameters"}
        if path.removeprefix("/{vhost}") == path or path.removeprefix("/{vhost}") not in paths
    }
    assert set(re.findall(r"^\| `([A-Z]+ /\S*)` \|", text("http.md"), re.MULTILINE)) == expected


def test_every_operation_is_described_by_a_sentence() -> None:
    """That of the handler's docstring, or of the description of its facet."""
    for path, operations in document("")["paths"].items():
        for method in operations.keys() - {"parameters"}:
            text = operations[method]["description"]
            assert re.match(r"[A-Z].*\.", text) or text.startswith(("exchange: ", "queue: ")), path


def test_every_command_has_a_section() -> None:
    titles = re.findall(r"^#+ warren (\S+)$", text("cli.md"), re.MULTILINE)
    assert titles == warren.list_commands(click.Context(warren))


def test_every_header_field_of_the_code_is_described() -> None:
    assert undescribed() == set()


def test_no_default_depends_on_this_machine() -> None:
    assert str(Path.home()) not in "".join(map(text, PAGES))
