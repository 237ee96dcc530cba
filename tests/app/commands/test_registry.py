"""All commands: each can be imported, says what it does, and is in docs/commands.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from warrenmq.app.cli import warren
from warrenmq.app.commands.registry import COMMANDS

DOCUMENT = (Path(__file__).parents[3] / "docs" / "commands.md").read_text()


def all_of(group: click.Group, name: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for word in group.list_commands(context):
        command = group.get_command(context, word)
        assert command is not None, word
        yield f"{name} {word}", command
        if isinstance(command, click.Group):
            yield from all_of(command, f"{name} {word}")


def test_every_command_says_what_it_does() -> None:
    found = dict(all_of(warren, "warren"))
    assert {f"warren {name}" for name in COMMANDS} <= found.keys()
    assert [name for name, command in found.items() if not command.help] == []


def test_no_summary_is_cut_on_a_terminal_of_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    groups = [warren, *(one for _, one in all_of(warren, "") if isinstance(one, click.Group))]
    # With the settings of `warren`: click keeps the help option that it makes first.
    contexts = [click.Context(one, **warren.context_settings) for one in groups]
    shown = [one.command.get_help(one).partition("Commands:")[2] for one in contexts]
    assert [text for text in shown if not text or "...\n" in text] == []


def test_every_command_has_examples() -> None:
    context = click.Context(warren)
    found = {name: warren.get_command(context, name) for name in warren.list_commands(context)}
    without = [
        name for name, one in found.items() if one is None or "Examples:" not in (one.epilog or "")
    ]
    assert without == []


def test_every_command_is_documented() -> None:
    names = warren.list_commands(click.Context(warren))
    assert [name for name in names if f"`warren {name}" not in DOCUMENT and f"`{name}`" not in
        DOCUMENT] == []  # fmt: skip
