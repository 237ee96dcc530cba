"""The pages of docs/reference, and what makes each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from . import cli, exit_codes, headers, http, settings

FOLDER: Final = Path(__file__).parents[2] / "docs" / "reference"
PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "settings.md": settings.write,
    "http.md": http.write,
    "headers.md": headers.write,
    "cli.md": cli.write,
    "exit-codes.md": exit_codes.write,
}
