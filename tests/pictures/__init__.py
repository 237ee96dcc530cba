"""Draws the pictures of docs/pictures, each from the text beside it: `make pictures`."""

from pathlib import Path

from .layout import place
from .picture import read
from .svg import write

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"


def draw(text: str) -> str:
    """Returns a picture as SVG; the same text always gives the same picture."""
    return write(place(read(text)))
