"""A class name stands for one thing."""

from __future__ import annotations

import ast
from collections import defaultdict

from tests.test_layers import SOURCES, is_in

APART = ("app.bench", "app.conformance", "app.documents", "app.testing", "hub.pipeline")
"""Programs of their own, and JSON documents, which have the names of what they describe."""
TWICE = {
    "Feed",  # A document of another site, and a registered feed.
    "View",  # What readers of the overview see, and the parts of a document that one asks for.
}


def test_class_names_stand_once() -> None:
    files = defaultdict[str, set[str]](set)
    for name, path in SOURCES.items():
        if is_in(name, APART):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                files[node.name].add(name)
    twice = {name: sorted(found) for name, found in files.items() if len(found) > 1}
    assert {name: found for name, found in twice.items() if name not in TWICE} == {}
    assert TWICE - twice.keys() == set()
