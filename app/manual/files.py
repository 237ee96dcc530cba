"""The files of the pages, in the repository and in an installed package."""

from __future__ import annotations

from pathlib import Path
from typing import Final

DOCS: Final = Path(__file__).parents[2] / "docs"
SOURCE: Final = ".md"
INDEX: Final = "README"
"""The file of a folder that is its page."""


def find_file(page: str) -> Path:
    """Returns the file of a page, which is a path below `/docs/`; one of a folder ends with `/`."""
    name = page + INDEX if page.endswith("/") or not page else page
    return DOCS / (name + SOURCE)
