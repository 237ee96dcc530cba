"""What commands print: tables for people, or JSON lines for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import click

Row = Mapping[str, Any]
_STYLES: Final = {
    **dict.fromkeys(("active", "delivered", "done", "ok", "running"), "green"),
    **dict.fromkeys(("paused", "pending", "retried", "suspended", "warning"), "yellow"),
    **dict.fromkeys(("blocked", "dead", "down", "error", "failed", "gone", "open"), "red"),
}
"""Colours of cells in a terminal."""


class Printer:
    """Prints documents; as JSON, one a line, if `as_json`."""

    def __init__(self, *, as_json: bool = False) -> None:
        self.as_json = as_json

    def rows(self, found: Iterable[Row], columns: Sequence[str], what: str) -> None:
        """Prints a table with these keys of each document, or all of each as JSON; `what` is their
        name in the plural."""
        if self.as_json:
            for one in found:
                click.echo(json.dumps(one))
            return
        cells = [[cell(value_of(one, column)) for column in columns] for one in found]
        if not cells:
            click.echo(f"no {what}")
            return
        _print_table([column.upper() for column in columns], cells)

    def one(self, found: Row) -> None:
        """Prints one document, a key a line."""
        if self.as_json:
            click.echo(json.dumps(found))
            return
        _print_table(None, [[key, cell(value)] for key, value in found.items()])

    def say(self, text: str) -> None:
        """Tells people what was done; programs have the exit code."""
        if not self.as_json:
            click.echo(text)


def value_of(document: Row, column: str) -> Any:
    """Returns the value of a key; dots lead into documents in it."""
    value: Any = document
    for key in column.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def cell(value: Any) -> str:
    """Returns a value as text of one line, in which nothing controls a terminal."""
    if value in (None, "", [], {}):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        value = ", ".join(value)
    text = json.dumps(value) if isinstance(value, list | dict) else str(value)
    return "".join(character if character.isprintable() else " " for character in text)


def _print_table(head: Sequence[str] | None, rows: Sequence[Sequence[str]]) -> None:
    """Prints a table as wide as the terminal; elsewhere each row is one line, for `grep`."""
    if not sys.stdout.isatty():
        for line in aligned(rows if head is None else [head, *rows]):
            click.echo(line)
        return
    # Imported here: it takes longer than a command whose output is not for a terminal.
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD if head else None, show_header=head is not None)
    for name in head or ("", ""):
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(Text(text, _STYLES.get(text, "")) for text in row))
    Console().print(table)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns a line for each row, with columns of the same width."""
    if not rows:
        return []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
