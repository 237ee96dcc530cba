"""The functions that worker processes can run, by name: each takes bytes and returns bytes.

They are imported in the process at their first use, so their modules should import little.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

Function = Callable[[bytes], bytes]

_PLACES = {
    "collect_items": ("outputs.collecting", "run"),
    "find_links": ("links.remote", "run"),
    "read_document": ("topics.reading", "run"),
    "read_feed": ("formats.reading", "run"),
    "read_opml": ("formats.reading", "run_opml"),
    "write_document": ("outputs.rendering", "run"),
}


def load(name: str) -> Function:
    """Imports a function by its name."""
    module, function = _PLACES[name]
    found: Function = getattr(importlib.import_module(f"...{module}", __name__), function)
    return found
