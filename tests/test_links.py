"""Links between the documents lead to files and headings that are there, and are shipped."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
ALWAYS_SHIPPED = {"LICENSE", "README.md"}


def links(document: Path) -> list[str]:
    """Targets of the links that stay within the project."""
    found = re.findall(r"\]\(([^)\s]+)\)", document.read_text())
    return [link for link in found if "://" not in link]


def headings(document: Path) -> set[str]:
    """Anchors as the usual viewers make them."""
    titles = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    for link in links(document):
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        assert target.is_file(), link
        assert not anchor or anchor in headings(target), link


def test_linked_documents_are_in_the_source_archive() -> None:
    shipped = set((ROOT / "MANIFEST.in").read_text().split()) | ALWAYS_SHIPPED
    targets = {link.partition("#")[0] for link in links(ROOT / "README.md")} - {""}
    assert targets
    assert [
        path for path in targets if path not in shipped and Path(path).parts[0] not in shipped
    ] == []
