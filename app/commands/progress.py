"""A bar for work that takes a while."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

Progress = Callable[[int], None]
"""Called with the bytes that were done since."""


@contextmanager
def progress(size: int, label: str) -> Iterator[Progress]:
    """Shows a bar of so many bytes while standard error is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    bar: Any
    with click.progressbar(length=size, label=label, file=sys.stderr) as bar:
        yield bar.update
