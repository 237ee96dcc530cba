"""`warren conformance`: runs the checks and prints their results."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import click

from ...core.errors import ConfigError
from . import report
from .options import Options
from .results import Result, Unusable
from .runner import choose, run


def check_hub(options: Options, json_file: str | None, *, verbose: bool) -> bool:
    """Runs the checks and prints a table; returns whether no MUST was violated.

    Raises `ConfigError` if there is no hub to check, or the file can't be written.
    """
    try:
        results = asyncio.run(run(options, _progress(options)))
    except Unusable as error:
        raise ConfigError(str(error)) from error
    click.echo(report.table(results, verbose=verbose))
    if json_file is not None:
        _write(json_file, report.document(options.hub, results))
    return not any(result.is_breach for result in results)


def read_numbers(text: str) -> frozenset[int]:
    """Parses a list of numbers. Raises `ConfigError`."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not all(word.isascii() and word.isdigit() for word in words):
        raise ConfigError(f"--only {text}: give numbers with commas between them, like 101,104")
    return frozenset(map(int, words))


def _progress(options: Options) -> Callable[[Result], None]:
    """Returns a function that shows the progress, if stderr is a terminal."""
    if not sys.stderr.isatty():
        return lambda _: None
    done: list[int] = []
    total = len(choose(options.only))

    def tell(result: Result) -> None:
        done.append(result.number)
        end = "\n" if len(done) == total else ""
        print(f"\r{len(done)} of {total} checks", end=end, file=sys.stderr, flush=True)

    return tell


def _write(file: str, text: str) -> None:
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--json {file}: {error.strerror}") from error
