"""Links between the documents lead to files and headings that are there, and are shipped; tables
and lists are whole."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
ALWAYS_SHIPPED = {"LICENSE", "README.md"}


def links(document: Path) -> list[str]:
    """Targets of the links that stay within the project."""
    found = re.findall(r"\]\(([^)\s]+)\)", document.read_text())
    return [link for link in found if "://" not in link]


def headings(document: Path) -> set[str]:
    """Anchors as the usual viewers make them."""
    titles = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    for link in links(document):
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        assert target.is_file(), link
        assert not anchor or anchor in headings(target), link


def test_pages_link_to_pages() -> None:
    """A server has the pages of `docs`, and nothing else of the project."""
    docs = ROOT / "docs"
    outside = [
        f"{document.relative_to(ROOT)}: {link}"
        for document in docs.rglob("*.md")
        for link in links(document)
        if not (document.parent / link.partition("#")[0]).resolve().is_relative_to(docs)
    ]
    assert outside == []


def test_linked_documents_are_in_the_source_archive() -> None:
    shipped = set((ROOT / "MANIFEST.in").read_text().split()) | ALWAYS_SHIPPED
    targets = {link.partition("#")[0] for link in links(ROOT / "README.md")} - {""}
    assert targets
    assert [
        path for path in targets if path not in shipped and Path(path).parts[0] not in shipped
    ] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_tables_and_lists_are_whole(document: Path) -> None:
    """After an empty line, or where a row breaks off, browsers show the rest as text."""
    text = re.sub(r"^ *```.*?^ *```$", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"^\|.*[^|\n]$", text, re.MULTILINE) == []
    assert re.findall(r"^\|.*\n\n(\|.*)\n(?!\|---)", text, re.MULTILINE) == []
    assert re.findall(r"^- .*\n\n(- .*)", text, re.MULTILINE) == []
