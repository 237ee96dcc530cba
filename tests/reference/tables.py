"""Tables and pages of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

GENERATED = "<!-- Written by `make reference`: change the code instead. -->"


def page(title: str, introduction: str, parts: Iterable[str]) -> str:
    """A page; each part is a section, a table or a paragraph."""
    return "\n\n".join([f"# {title}", GENERATED, introduction, *parts]) + "\n"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    rule = "|" + "---|" * len(heads)
    return "\n".join([_row(heads), rule, *map(_row, rows)])


def code(text: object) -> str:
    """The text as code; nothing for an empty one."""
    return f"`{text}`" if str(text) else ""


def codes(texts: Iterable[object]) -> str:
    return ", ".join(map(code, texts))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
