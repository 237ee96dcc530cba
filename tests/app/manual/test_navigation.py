"""The list of pages, from the lists of the index."""

from __future__ import annotations

from warrenmq.app.manual.navigation import Entry, PageGroup, read_groups


def test_groups_are_headings_with_lists() -> None:
    text = """# Index

[Elsewhere](none.md) is no item.

## First

- [A `b`](a.md): and [more](none.md)
    - [Inner](in/README.md#part)
- no link

## Empty

## Second

1. [C](c.md)
2. [Site](https://example.org/a.md)
"""
    assert read_groups(text) == [
        PageGroup("First", [Entry("A b", "a"), Entry("Inner", "in/", is_inner=True)]),
        PageGroup("Second", [Entry("C", "c")]),
    ]
