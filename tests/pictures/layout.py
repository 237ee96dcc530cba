"""Where the boxes, arrows and labels of a picture are, in pixels."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from .picture import Arrow, Box, Picture

HEIGHT, ROW, PADDING, MARGIN = 40, 72, 14, 20
BEND = 56
"""How far an arrow goes until it has changed its row; its label stands above the rest."""
BOW = 34
"""How deep an arrow that leads back hangs below its boxes."""
_NARROW, _WIDE = "fijlrtI.,:;/'|()[] *", "mwMW@%"


@dataclass(frozen=True)
class PlacedBox:
    box: Box
    x: float
    y: float
    width: float


@dataclass(frozen=True)
class PlacedArrow:
    """A path with the middle of its label; one that leads back is dashed."""

    path: str
    back: bool
    label: str
    x: float
    y: float


@dataclass(frozen=True)
class Layout:
    picture: Picture
    boxes: list[PlacedBox]
    arrows: list[PlacedArrow]
    width: float
    height: float


def text_width(text: str) -> float:
    """Estimates how wide a text is at most, in the wider ones of the usual fonts."""
    return sum(
        5.2 if one in _NARROW else 12.6 if one in _WIDE else 9.2 if one.isupper() else 8.2
        for one in text
    )


def place(picture: Picture) -> Layout:
    rows = max(map(len, picture.columns))
    boxes, right = _boxes(picture, rows * ROW)
    columns = {box.name: number for number, column in enumerate(picture.columns) for box in column}
    placed = {one.box.name: one for one in boxes}
    joining = _joining(picture)
    arrows = [_arrow(arrow, placed, columns, joining) for arrow in picture.arrows]
    lowest = max([one.y + HEIGHT for one in boxes] + [one.y + 8 for one in arrows])
    return Layout(picture, boxes, arrows, right + MARGIN, lowest + MARGIN)


def _boxes(picture: Picture, height: float) -> tuple[list[PlacedBox], float]:
    boxes, x = [], float(MARGIN)
    widths = [
        max(text_width(box.name) for box in column) + 2 * PADDING for column in picture.columns
    ]
    for number, (column, width) in enumerate(zip(picture.columns, widths, strict=True)):
        for row, box in enumerate(column):
            middle = MARGIN + height * (row + 0.5) / len(column)
            boxes.append(PlacedBox(box, x, middle - HEIGHT / 2, width))
        x += width + _gap(picture, number)
    return boxes, x - _gap(picture, len(widths) - 1)


def _gap(picture: Picture, number: int) -> float:
    """Returns the room behind a column: for the longest label between it and the next."""
    if number + 1 == len(picture.columns):
        return 0.0
    sources, targets = ({box.name for box in one} for one in picture.columns[number : number + 2])
    labels = [
        text_width(arrow.label)
        for arrow in picture.arrows
        if arrow.source in sources and arrow.target in targets
    ]
    return BEND + max(labels, default=0.0) + 18


def _joining(picture: Picture) -> set[str]:
    """Returns the boxes with one arrow, to a box with several."""
    sources = Counter(arrow.source for arrow in picture.arrows)
    targets = Counter(arrow.target for arrow in picture.arrows)
    return {
        arrow.source
        for arrow in picture.arrows
        if sources[arrow.source] == 1 and targets[arrow.target] > 1
    }


def _arrow(
    arrow: Arrow, placed: dict[str, PlacedBox], columns: dict[str, int], joining: set[str]
) -> PlacedArrow:
    source, target = placed[arrow.source], placed[arrow.target]
    if columns[arrow.source] < columns[arrow.target]:
        return _onward(source, target, arrow.label, joins=source.box.name in joining)
    if columns[arrow.source] == columns[arrow.target]:
        return _down(source, target, arrow.label)
    return _back(source, target, arrow.label)


def _onward(source: PlacedBox, target: PlacedBox, label: str, *, joins: bool) -> PlacedArrow:
    """Bends at its beginning, or, where it joins others, at its end."""
    x1, y1 = source.x + source.width, source.y + HEIGHT / 2
    x2, y2 = target.x, target.y + HEIGHT / 2
    x, y = (x2 - BEND, y1) if joins else (x1, y2)
    middle = x + BEND / 2
    bend = f"L{x:g} {y1:g} C{middle:g} {y1:g} {middle:g} {y2:g} {x + BEND:g} {y2:g}"
    path = f"M{x1:g} {y1:g} {bend} L{x2:g} {y2:g}"
    centre = (x1 + x2 + (-BEND if joins else BEND)) / 2 if y1 != y2 else (x1 + x2) / 2
    return PlacedArrow(path, False, label, centre, y - 7)


def _down(source: PlacedBox, target: PlacedBox, label: str) -> PlacedArrow:
    x = source.x + source.width / 2
    up = source.y > target.y
    y1, y2 = (source.y, target.y + HEIGHT) if up else (source.y + HEIGHT, target.y)
    beside = x + text_width(label) / 2 + 8
    return PlacedArrow(f"M{x:g} {y1:g} L{x:g} {y2:g}", False, label, beside, (y1 + y2) / 2 + 4)


def _back(source: PlacedBox, target: PlacedBox, label: str) -> PlacedArrow:
    x1, y1 = source.x + source.width / 2, source.y + HEIGHT
    x2, y2 = target.x + target.width / 2, target.y + HEIGHT
    low = max(y1, y2) + BOW
    path = f"M{x1:g} {y1:g} C{x1:g} {low:g} {x2:g} {low:g} {x2:g} {y2:g}"
    return PlacedArrow(path, True, label, (x1 + x2) / 2, low + 3)
