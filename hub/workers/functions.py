"""The functions that worker processes know, by name: each takes bytes and returns bytes.

They are imported in the process at their first use, so they should import little.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

Function = Callable[[bytes], bytes]

_PLACES = {
    "find_links": ("links.remote", "run"),
    "read_document": ("topics.reading", "run"),
}


def load(name: str) -> Function:
    module, function = _PLACES[name]
    found: Function = getattr(importlib.import_module(f"...{module}", __name__), function)
    return found
