"""The text of a picture: title, description, boxes in columns, and arrows between them.

    A work queue
    Two workers share the tasks of a queue.

    client publisher | queue tasks | client worker 1
                     |             | client worker 2

    publisher -> tasks: publish
    tasks -> worker 1

The first word of a box is its kind, the others are its name. An arrow may have a label.
"""

from __future__ import annotations

from dataclasses import dataclass

KINDS = ("client", "exchange", "queue", "callback", "store")


@dataclass(frozen=True)
class Box:
    kind: str
    name: str


@dataclass(frozen=True)
class Arrow:
    source: str
    target: str
    label: str


@dataclass(frozen=True)
class Picture:
    title: str
    description: str
    columns: list[list[Box]]
    arrows: list[Arrow]


def read(text: str) -> Picture:
    """Raises `ValueError` for a box of an unknown kind, and for an arrow that leads nowhere."""
    head, grid, links = text.strip().split("\n\n")
    title, *description = head.splitlines()
    columns = [[_box(cell) for cell in column if cell] for column in _columns(grid)]
    arrows = [_arrow(line) for line in links.splitlines()]
    names = {box.name for column in columns for box in column}
    for arrow in arrows:
        if missing := {arrow.source, arrow.target} - names:
            raise ValueError(f"{title}: no box is named {missing.pop()!r}")
    return Picture(title, " ".join(description), columns, arrows)


def _columns(grid: str) -> list[tuple[str, ...]]:
    rows = [[cell.strip() for cell in line.split("|")] for line in grid.splitlines()]
    return list(zip(*rows, strict=True))


def _box(cell: str) -> Box:
    kind, _, name = cell.partition(" ")
    if kind not in KINDS:
        raise ValueError(f"{cell!r} begins with none of {', '.join(KINDS)}")
    return Box(kind, name)


def _arrow(line: str) -> Arrow:
    ends, _, label = line.partition(": ")
    source, _, target = ends.partition(" -> ")
    return Arrow(source, target, label)
