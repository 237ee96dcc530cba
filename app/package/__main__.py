"""Runs the command line: `python -m warrenmq serve` is `warren serve`."""

from __future__ import annotations

from warrenmq.app.cli import main

if __name__ == "__main__":
    main()
