"""Writes the pages of docs/reference anew."""

from __future__ import annotations

from .pages import FOLDER, PAGES

for _name, _page in PAGES.items():
    (FOLDER / _name).write_text(_page())
    print(f"docs/reference/{_name}")
